package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/relay"
)

func TestMySQLDSN(t *testing.T) {
	const defaults = "readTimeout=1m&timeout=10s&wait_timeout=60&writeTimeout=1m"
	for address, want := range map[string]string{
		"mysql://u:p@h/db":    "u:p@tcp(h:3306)/db?" + defaults,
		"mysql://u@h:3307/db": "u@tcp(h:3307)/db?" + defaults,
		"mysql://h/db":        "@tcp(h:3306)/db?" + defaults,
		"mysql://u:p%40ss%2Fw%3Ard%3F@[::1]:1/a%3Fb": "u:p@ss/w:rd?@tcp([::1]:1)/a%3Fb?" + defaults,
		"mysql://u:p@h/db?tls=true&timeout=3s":       "u:p@tcp(h:3306)/db?readTimeout=1m&timeout=3s&tls=true&wait_timeout=60&writeTimeout=1m",
	} {
		if got, err := MySQLDSN(address); err != nil || got != want {
			t.Errorf("MySQLDSN(%q) = %q, %v; want %q", address, got, err, want)
		}
	}
}

func TestMySQLDSNRefusesWithoutShowingThePassword(t *testing.T) {
	for address, want := range map[string]string{
		"":                                           "must have the form",
		"postgres://u:secret@h/db":                   "must have the form",
		"u:secret@tcp(h)/db":                         "must have the form",
		"mysql://u:secret@h:port/db":                 "must have the form",
		"mysql://u:secret%zz@h/db":                   "must have the form",
		"mysql://u:secret@/db":                       "must have the form",
		"mysql://u:secret@h":                         "must name one database",
		"mysql://u:secret@h/":                        "must name one database",
		"mysql://u:secret@h/a/b":                     "must name one database",
		"mysql://u:secret@h/db?a=%zz":                "parameters",
		"mysql://a%3Ab:secret@h/db":                  "colon",
		"mysql://u:secret@h/db?multiStatements=true": "multiStatements",
	} {
		if got, err := MySQLDSN(address); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("MySQLDSN(%q) = %q, %v; want %q", address, got, err, want)
		}
	}
}

func TestMySQLCauses(t *testing.T) {
	s := openTest(t, MySQL, Config{})
	for text, want := range map[string]error{
		"Error 1213 (40001): Deadlock found when trying to get lock; try restarting transaction":  errBusy,
		"Error 1205 (HY000): Lock wait timeout exceeded; try restarting transaction":              errBusy,
		"Error 3572 (HY000): Statement aborted because lock(s) could not be acquired immediately": errBusy,
		"Error 1146 (42S02): Table 'a.b' doesn't exist":                                           relay.ErrSchema,
		"Error 1176 (42000): Key 'a' doesn't exist in table 'b'":                                  relay.ErrSchema,
		"Error 1045 (28000): Access denied for user 'a'@'b' (using password: YES)":                ErrDenied,
		"Error 1114 (HY000): The table 'a' is full":                                               ErrFull,
		"Error 1040 (08004): Too many connections":                                                ErrUnreachable,
		"invalid connection": ErrUnreachable,
		"Error 1062 (23000): Duplicate entry 'Error 1213 (40001): x' for key 'y'": nil,
	} {
		if got := s.cause(fmt.Errorf("settle: %w", errors.New(text))); got != want {
			t.Errorf("%s: cause %v, want %v", text, got, want)
		}
	}
	if got := s.cause(fmt.Errorf("invalid connection: %w", context.Canceled)); got != nil {
		t.Errorf("a cancelled call has the cause %v", got)
	}
}

func TestMySQLBindsParametersByTheirPlace(t *testing.T) {
	statement, args := MySQL.bind("SELECT :2, date_format(a, '%H:%i'), :1, :2, :10", []any{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	if statement != "SELECT ?, date_format(a, '%H:%i'), ?, ?, ?" || !reflect.DeepEqual(args, []any{2, 1, 2, 10}) {
		t.Errorf("%s with %v", statement, args)
	}
}

// TestMySQLHasTheQueriesOfPostgres, and takes the same parameters for each.
func TestMySQLHasTheQueriesOfPostgres(t *testing.T) {
	postgres, mysql := openTest(t, Postgres, Config{}).queries, openTest(t, MySQL, Config{}).queries
	for _, own := range []string{"heads", "read_shard", "lock", "unlock"} {
		delete(mysql, own)
	}
	delete(postgres, "floors")
	if have, want := slices.Sorted(maps.Keys(mysql)), slices.Sorted(maps.Keys(postgres)); !slices.Equal(have, want) {
		t.Errorf("have %v, want %v", have, want)
	}
	for name, q := range mysql {
		if name == "read" {
			continue // shards, floors and ids in flight stand in its text
		}
		for n := range 9 {
			mark := func(d Dialect, q query) bool { return strings.Contains(strings.Join(q, "\n")+" ", d.parameter(n+1)) }
			if mark(MySQL, q) != mark(Postgres, postgres[name]) {
				t.Errorf("%s: parameter %d is in one of the dialects only", name, n+1)
			}
		}
	}
}

func TestMySQLFindsItsIndexes(t *testing.T) {
	migrations, err := openTest(t, MySQL, Config{Table: "app.billing"}).migrations()
	if err != nil {
		t.Fatal(err)
	}
	indexes := MySQL.indexes(migrations[1].text)
	if want := "ALTER TABLE `app`.`billing` ADD INDEX `billing_ready` (ready_shard, id);"; indexes["billing_ready"] != want {
		t.Errorf("%q, want %q", indexes["billing_ready"], want)
	}
	if want := "ALTER TABLE `app`.`billing` ADD UNIQUE INDEX `billing_dedup` (dedup_key);"; indexes["billing_dedup"] != want {
		t.Errorf("%q, want %q", indexes["billing_dedup"], want)
	}
	if len(indexes) != 10 {
		t.Errorf("%d indexes: %v", len(indexes), indexes)
	}
}

func TestFlightListsIDsInTheirShard(t *testing.T) {
	f := newFlight()
	f.add([]relay.Event{{ID: "1", Shard: 0}, {ID: "2", Shard: 1}, {ID: "3", Shard: 1}})
	list := f.byShard([]string{"2", "3", "9"})
	if a, b := list(0), list(1); a != "-1, 9" || b != "-1, 9, 2, 3" {
		t.Errorf("%q and %q", a, b)
	}
	if list := f.byShard([]string{"1"}); list(1) != "-1, 1" {
		t.Errorf("%q: what is no longer in flight is not forgotten", list(1))
	}
}
