package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/relay"
)

type stateError string

func (e stateError) Error() string    { return "SQLSTATE " + string(e) }
func (e stateError) SQLState() string { return string(e) }

func openTest(t *testing.T, d Dialect, config Config) *Store {
	t.Helper()
	s, err := Open(nil, d, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRepeatUntilOthersAreOutOfTheWay(t *testing.T) {
	for d, busy := range map[*Dialect]error{
		&Postgres: fmt.Errorf("wrapped: %w", stateError("40P01")),
		&SQLite:   errors.New("database is locked (5) (SQLITE_BUSY)"),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := openTest(t, *d, Config{})
			calls := 0
			err := s.repeat(t.Context(), "settle", func() error {
				if calls++; calls < maxTries {
					return busy
				}
				return nil
			})
			if err != nil || calls != maxTries {
				t.Errorf("%s: %v after %d calls", d, err, calls)
			}
		})
	}
}

func TestRepeatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openTest(t, Postgres, Config{Table: "app.events"})
		calls := 0
		err := s.repeat(t.Context(), "settle", func() error { calls++; return stateError("40001") })
		var described *Error
		if !errors.As(err, &described) || described.Op != "settle" || described.Table != "app.events" || calls != maxTries {
			t.Errorf("%v after %d calls", err, calls)
		}

		calls = 0
		if err := s.repeat(t.Context(), "settle", func() error { calls++; return stateError("23505") }); err == nil || calls != 1 {
			t.Errorf("%v after %d calls; want one call for an error that will not pass", err, calls)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := s.repeat(ctx, "settle", func() error { return stateError("40001") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the deadline has passed", err)
		}
	})
}

func TestCauses(t *testing.T) {
	for _, test := range []struct {
		d    Dialect
		err  error
		want error
	}{
		{Postgres, stateError("42P01"), relay.ErrSchema},
		{Postgres, stateError("42703"), relay.ErrSchema},
		{Postgres, stateError("42501"), ErrDenied},
		{Postgres, stateError("28P01"), ErrDenied},
		{Postgres, stateError("08006"), ErrUnreachable},
		{Postgres, stateError("57P01"), ErrUnreachable},
		{Postgres, stateError("53100"), ErrFull},
		{Postgres, stateError("22P02"), nil},
		{Postgres, fmt.Errorf("read: %w", context.Canceled), nil},
		{SQLite, errors.New("SQL logic error: no such table: x (1)"), relay.ErrSchema},
		{SQLite, errors.New("database or disk is full (13)"), ErrFull},
		{SQLite, errors.New("unable to open database file (14)"), ErrUnreachable},
		{SQLite, errors.New("constraint failed"), nil},
	} {
		s := openTest(t, test.d, Config{})
		if got := s.cause(test.err); !errors.Is(got, test.want) {
			t.Errorf("%s, %v: cause %v, want %v", test.d, test.err, got, test.want)
		}
		if err := s.fail("read", test.err); !errors.Is(err, test.err) || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%v does not wrap %v and %v", err, test.err, test.want)
		}
	}
}

func TestSplitLeavesCommentsOut(t *testing.T) {
	got := split("-- one; or two;\nSELECT 1,\n  -- two;\n  2;\n\n-- three\nSELECT ';' FROM a;\n")
	if want := (query{"SELECT 1,\n  2", "SELECT ';' FROM a"}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDialectsHaveTheSameQueries keeps the dialects' files in step: same names, and the same parameters in each.
func TestDialectsHaveTheSameQueries(t *testing.T) {
	postgres, sqlite := openTest(t, Postgres, Config{}).queries, openTest(t, SQLite, Config{}).queries
	delete(postgres, "floors") // SQLite forgets at once
	names := slices.Sorted(maps.Keys(postgres))
	if !slices.Equal(names, slices.Sorted(maps.Keys(sqlite))) {
		t.Errorf("postgres has %v, sqlite %v", names, slices.Sorted(maps.Keys(sqlite)))
	}
	marks := regexp.MustCompile(`[$?]([0-9])`)
	count := func(q query) int {
		highest := 0
		for _, statement := range q {
			for _, mark := range marks.FindAllStringSubmatch(statement, -1) {
				highest = max(highest, int(mark[1][0]-'0'))
			}
		}
		return highest
	}
	for _, name := range names {
		if p, s := count(postgres[name]), count(sqlite[name]); p != s {
			t.Errorf("%s takes %d parameters in postgres, %d in sqlite", name, p, s)
		}
	}
}
