package inbox_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

func newInbox(t *testing.T) *inbox.Inbox {
	t.Helper()
	in, err := inbox.New(inbox.Config{Dialect: postrider.SQLite})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// noTx fails the test when something is written through it.
type noTx struct{ t *testing.T }

func (tx noTx) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	tx.t.Errorf("executed %s", query)
	return driver.RowsAffected(1), nil
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, err := inbox.New(inbox.Config{Dialect: "oracle", Table: "a.b.c"})
	if err == nil || !strings.Contains(err.Error(), `Dialect is "oracle"`) || !strings.Contains(err.Error(), `"a.b.c"`) {
		t.Errorf("error %v", err)
	}
	if _, err := inbox.New(inbox.Config{}); err == nil {
		t.Error("no error without a dialect")
	}
}

func TestApplyRefusesWhatIsNoTransaction(t *testing.T) {
	for _, tx := range []postrider.Tx{nil, (*sql.Tx)(nil), new(sql.DB)} {
		_, err := newInbox(t).Apply(t.Context(), tx, inbox.Key{Consumer: "c", DedupKey: "k"}, mustNotRun(t))
		var refused *postrider.TxError
		if !errors.As(err, &refused) {
			t.Errorf("%T: error %v, want a TxError", tx, err)
		}
	}
}

func TestApplyRefusesKeysThatIdentifyNothing(t *testing.T) {
	long := strings.Repeat("x", postrider.MaxField+1)
	for _, key := range []inbox.Key{
		{}, {Consumer: "c"}, {DedupKey: "k"}, {Consumer: "c", DedupKey: long}, {Consumer: long, DedupKey: "k"},
		{Consumer: "c", DedupKey: "a\x00"}, {Consumer: "c", DedupKey: "\xff"},
	} {
		_, err := newInbox(t).Apply(t.Context(), noTx{t}, key, mustNotRun(t))
		var refused *inbox.KeyError
		if !errors.As(err, &refused) || refused.Key != key {
			t.Errorf("%s: error %v, want a KeyError", key, err)
		}
	}
}

func mustNotRun(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the effect ran")
		return nil
	}
}
