package postrider_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// execTx is a transaction that can only execute. It keeps the statements that it gets.
type execTx struct {
	statements []statement
	affected   func(statement) int64 // default: every row of the statement is written
	err        error
}

type statement struct {
	query string
	rows  []map[string]any
}

func (tx *execTx) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	s := statement{query: query}
	if err := json.Unmarshal([]byte(args[0].(string)), &s.rows); err != nil {
		return nil, err
	}
	tx.statements = append(tx.statements, s)
	if tx.affected != nil {
		return driver.RowsAffected(tx.affected(s)), tx.err
	}
	return driver.RowsAffected(len(s.rows)), tx.err
}

// column returns the values of a column in the order in which the rows were sent.
func (tx *execTx) column(name string) (values []any) {
	for _, s := range tx.statements {
		for _, row := range s.rows {
			values = append(values, row[name])
		}
	}
	return values
}

// returningTx also returns the ids of the rows that drop lets through.
type returningTx struct {
	execTx
	drop func(index int) bool
}

func (tx *returningTx) QueryStrings(ctx context.Context, query string, args ...any) ([]string, error) {
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return nil, err
	}
	var ids []string
	for i, row := range tx.statements[len(tx.statements)-1].rows {
		if !tx.drop(i) {
			ids = append(ids, row["event_id"].(string))
		}
	}
	return ids, nil
}

func newOutbox(t *testing.T, cfg postrider.Config) *postrider.Outbox {
	t.Helper()
	if cfg.Dialect == "" {
		cfg.Dialect = postrider.PostgreSQL
	}
	outbox, err := postrider.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return outbox
}

func event() postrider.Event {
	return postrider.Event{
		AggregateType: "order", AggregateID: "17", Type: "OrderPlaced", Payload: []byte(`{"total": 3}`),
	}
}

func events(n int) []postrider.Event {
	all := make([]postrider.Event, n)
	for i := range all {
		all[i] = event()
		all[i].AggregateID = fmt.Sprint(i)
	}
	return all
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, err := postrider.New(postrider.Config{Dialect: "oracle", Table: "a.b.c", MaxPayload: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`Dialect is "oracle"`, `"a.b.c"`, "MaxPayload is -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestNewNeedsADialect(t *testing.T) {
	if _, err := postrider.New(postrider.Config{}); err == nil {
		t.Error("no error")
	}
}

func TestAddRefusesWhatIsNoTransaction(t *testing.T) {
	pool := sql.OpenDB(noConnector{})
	defer pool.Close()
	for name, tx := range map[string]postrider.Tx{
		"pool":           pool,
		"embedded pool":  struct{ *sql.DB }{pool},
		"driver of ent":  entDriver{},
		"prepared pool":  gormPool{},
		"nil":            nil,
		"nil *sql.Tx":    (*sql.Tx)(nil),
		"nil *sql.DB":    (*sql.DB)(nil),
		"nil other type": (*execTx)(nil),
	} {
		t.Run(name, func(t *testing.T) {
			for _, given := range [][]postrider.Event{{event()}, nil} {
				_, err := newOutbox(t, postrider.Config{}).Add(t.Context(), tx, given...)
				var refused *postrider.TxError
				if !errors.As(err, &refused) {
					t.Fatalf("error %v, want a TxError", err)
				}
				if want := fmt.Sprintf("%T", tx); refused.Type != want {
					t.Errorf("Type %q, want %q", refused.Type, want)
				}
				if !strings.Contains(err.Error(), "would not commit and roll back together") {
					t.Errorf("%q does not say why", err)
				}
			}
		})
	}
}

type noConnector struct{ driver.Connector }

type entDriver struct{ execTx }

func (entDriver) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	panic("written through a pool")
}
func (entDriver) DB() *sql.DB { return nil }

type gormPool struct{}

func (gormPool) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	panic("written through a pool")
}
func (gormPool) GetDBConn() (*sql.DB, error) { return nil, nil }

func TestAddTakesPreparedTransactionOfGORM(t *testing.T) {
	tx := gormTx{}
	if _, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &tx, event()); err != nil {
		t.Error(err)
	}
}

type gormTx struct{ execTx }

func (*gormTx) GetDBConn() (*sql.DB, error) { return nil, nil }
func (*gormTx) Commit() error               { return nil }

func TestAddWritesEventsInOneStatementAndInTheirOrder(t *testing.T) {
	var tx execTx
	many := events(1000)
	added, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &tx, many...)
	if err != nil {
		t.Fatal(err)
	}
	if len(tx.statements) != 1 {
		t.Errorf("%d statements, want 1", len(tx.statements))
	}
	checkOrder(t, &tx, many, added)
}

func TestStatementIsTheSameForAnyNumberOfEvents(t *testing.T) {
	for _, dialect := range []postrider.Dialect{postrider.PostgreSQL, postrider.SQLite} {
		var tx execTx
		for _, n := range []int{1, 2, 50} {
			if _, err := newOutbox(t, postrider.Config{Dialect: dialect}).Add(t.Context(), &tx, events(n)...); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range tx.statements {
			if s.query != tx.statements[0].query {
				t.Errorf("%s: %s\nand\n%s", dialect, tx.statements[0].query, s.query)
			}
		}
	}
}

func checkOrder(t *testing.T, tx *execTx, events []postrider.Event, added []postrider.Added) {
	t.Helper()
	ids, keys := tx.column("event_id"), tx.column("aggregate_id")
	if len(ids) != len(events) || len(added) != len(events) {
		t.Fatalf("%d rows and %d added, want %d", len(ids), len(added), len(events))
	}
	for i := range events {
		if ids[i] != added[i].EventID || keys[i] != events[i].AggregateID {
			t.Fatalf("row %d has id %v and key %v, want %s and %s", i, ids[i], keys[i], added[i].EventID, events[i].AggregateID)
		}
	}
}

func TestAddWithExecAloneReportsDrops(t *testing.T) {
	many := events(5)
	many[1].DedupKey, many[3].DedupKey = "one", "three"
	tx := execTx{affected: func(s statement) int64 {
		if s.rows[0]["dedup_key"] == "three" {
			return 0
		}
		return int64(len(s.rows))
	}}
	added, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &tx, many...)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tx.column("aggregate_id"), []any{"0", "1", "2", "3", "4"}; !slices.Equal(got, want) {
		t.Errorf("keys written %v, want %v", got, want)
	}
	checkDropped(t, added, 3)
}

func TestAddWithReturningReportsDropsInOneStatement(t *testing.T) {
	many := events(5)
	many[1].DedupKey, many[3].DedupKey = "one", "three"
	tx := returningTx{drop: func(index int) bool { return index == 3 }}
	added, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &tx, many...)
	if err != nil {
		t.Fatal(err)
	}
	if len(tx.statements) != 1 {
		t.Errorf("%d statements, want 1", len(tx.statements))
	}
	checkDropped(t, added, 3)
}

func checkDropped(t *testing.T, added []postrider.Added, dropped int) {
	t.Helper()
	for i, a := range added {
		if a.Dropped != (i == dropped) || (a.EventID == "") != a.Dropped {
			t.Errorf("event %d: %+v", i, a)
		}
	}
}

func TestAddFailsWhenTheTableSwallowsRows(t *testing.T) {
	none := func(statement) int64 { return 0 }
	deduped := event()
	deduped.DedupKey = "k"
	for name, add := range map[string]struct {
		tx     postrider.Tx
		events []postrider.Event
	}{
		"exec":      {&execTx{affected: none}, events(1)},
		"part":      {&execTx{affected: func(statement) int64 { return 2 }}, events(3)},
		"returning": {&returningTx{drop: func(int) bool { return true }}, []postrider.Event{event(), deduped}},
	} {
		t.Run(name, func(t *testing.T) {
			if added, err := newOutbox(t, postrider.Config{}).Add(t.Context(), add.tx, add.events...); err == nil {
				t.Errorf("added %+v without an error", added)
			}
		})
	}
}

func TestAddPassesOnErrorsOfTheDatabase(t *testing.T) {
	broken := errors.New("connection lost")
	deduped := event()
	deduped.DedupKey = "k"
	for _, tx := range []postrider.Tx{&execTx{err: broken}, &returningTx{execTx: execTx{err: broken}}} {
		_, err := newOutbox(t, postrider.Config{}).Add(t.Context(), tx, deduped)
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), `"outbox_events"`) {
			t.Errorf("%T: error %v", tx, err)
		}
	}
}

func TestAddOfNothing(t *testing.T) {
	var tx execTx
	added, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &tx)
	if len(added) != 0 || err != nil || len(tx.statements) != 0 {
		t.Errorf("%v, %v, %d statements", added, err, len(tx.statements))
	}
}

func TestScheduledTimeIsRoundedUpAndInUTC(t *testing.T) {
	for at, want := range map[time.Time]any{
		time.Date(2030, 1, 2, 3, 4, 5, 678_000_001, time.FixedZone("", 3600)): "2030-01-02 02:04:05.679",
		time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC):                 "2030-01-02 03:04:05.678",
		{}: nil,
	} {
		var tx execTx
		scheduled := event()
		scheduled.At = at
		if _, err := newOutbox(t, postrider.Config{}).Add(t.Context(), &tx, scheduled); err != nil {
			t.Fatal(err)
		}
		if got := tx.column("next_attempt_at")[0]; got != want {
			t.Errorf("%v: %v, want %v", at, got, want)
		}
	}
}

// Whoever need not know what was dropped gets along with one statement in every database.
func TestAddNewWritesAllEventsInOneStatement(t *testing.T) {
	for _, dialect := range []postrider.Dialect{postrider.PostgreSQL, postrider.SQLite, postrider.MySQL} {
		outbox, err := postrider.New(postrider.Config{Dialect: dialect})
		if err != nil {
			t.Fatal(err)
		}
		var events []postrider.Event
		for i := range 3 {
			events = append(events, postrider.Event{
				AggregateType: "order", AggregateID: fmt.Sprint(i), Type: "Paid", Payload: []byte("{}"), DedupKey: fmt.Sprint(i),
			})
		}
		tx := &execTx{affected: func(statement) int64 { return 1 }}
		if err := outbox.AddNew(t.Context(), tx, events...); err != nil {
			t.Errorf("%s: %v", dialect, err)
		}
		if len(tx.statements) != 1 || len(tx.statements[0].rows) != 3 || !strings.Contains(tx.statements[0].query, "ON ") {
			t.Errorf("%s: statements %+v", dialect, tx.statements)
		}
		events[1].Payload = nil
		var refused postrider.EventErrors
		if err := outbox.AddNew(t.Context(), tx, events...); !errors.As(err, &refused) || len(tx.statements) != 1 {
			t.Errorf("%s: an event that is not fit gives %v", dialect, err)
		}
		tx.err = errors.New("gone")
		if err := outbox.AddNew(t.Context(), tx, events[0]); !errors.Is(err, tx.err) {
			t.Errorf("%s: %v", dialect, err)
		}
	}
}
