package inbox_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

func newInbox(t *testing.T, dedupKey func(inbox.Message) (string, error)) *inbox.Inbox {
	t.Helper()
	in, err := inbox.New(inbox.Config{Dialect: postrider.SQLite, Consumer: "c", DedupKey: dedupKey})
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

func (tx noTx) QueryStrings(_ context.Context, query string, _ ...any) ([]string, error) {
	tx.t.Errorf("executed %s", query)
	return nil, nil
}

func message(id string) inbox.Message {
	return inbox.Message{Coordinates: "kafka:orders/0@7", Headers: []inbox.Header{{Name: "X-Event-Id", Value: id}}}
}

func TestNewReportsEveryMistake(t *testing.T) {
	_, err := inbox.New(inbox.Config{Dialect: postrider.MySQL, Table: "a.b.c", Window: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{`"a.b.c"`, "Consumer is empty", "Window is -1ns"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %v says nothing of %s", err, part)
		}
	}
	if _, err := inbox.New(inbox.Config{Dialect: "oracle", Consumer: "c"}); err == nil || !strings.Contains(err.Error(), `Dialect is "oracle"`) {
		t.Errorf("error %v", err)
	}
}

// onlyExec is a transaction that could not tell what it has met.
type onlyExec struct{ postrider.Tx }

func TestApplyRefusesWhatIsNoTransaction(t *testing.T) {
	for _, tx := range []postrider.Tx{nil, (*sql.Tx)(nil), new(sql.DB), onlyExec{}} {
		result, err := newInbox(t, nil).Apply(t.Context(), tx, message("m"), mustNotRun(t))
		var refused *postrider.TxError
		if !errors.As(err, &refused) || result.Err != err {
			t.Errorf("%T: error %v and %v, want a TxError", tx, err, result.Err)
		}
	}
}

func TestMessagesWithoutAKeyAreMalformed(t *testing.T) {
	noID := message("")
	noID.Headers = nil
	for name, m := range map[string]inbox.Message{
		"none": noID, "empty": message(""), "long": message(strings.Repeat("x", postrider.MaxField+1)),
		"control": message("a\x00"), "not UTF-8": message("\xff"),
	} {
		_, err := newInbox(t, nil).Apply(t.Context(), noTx{t}, m, mustNotRun(t))
		var refused *inbox.KeyError
		if !errors.As(err, &refused) || inbox.ClassOf(err) != inbox.ClassMalformed {
			t.Errorf("%s: error %v, want a KeyError", name, err)
		}
	}
}

func TestErrorOfADedupKeyKeepsItsClass(t *testing.T) {
	failed := errors.New("no user")
	for want, err := range map[inbox.Class]error{
		inbox.ClassMalformed: failed, inbox.ClassPermanent: inbox.Permanent(failed), inbox.ClassUnavailable: inbox.Unavailable(failed),
	} {
		_, got := newInbox(t, func(inbox.Message) (string, error) { return "", err }).Apply(t.Context(), noTx{t}, message("m"), mustNotRun(t))
		if inbox.ClassOf(got) != want || !errors.Is(got, failed) {
			t.Errorf("error %v of class %s, want %s", got, inbox.ClassOf(got), want)
		}
	}
}

func mustNotRun(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the effect ran")
		return nil
	}
}

func TestBusinessKeysOfDifferentPartsDiffer(t *testing.T) {
	keys := make(map[string][]string)
	for _, parts := range [][]string{{"a", "b"}, {"a/b"}, {"a%2Fb"}, {"a", "b/"}, {"a/", "b"}, {"a%", "2Fb"}, {"a"}} {
		key, err := inbox.BusinessKey(parts...)
		if err != nil {
			t.Fatal(err)
		}
		if other, found := keys[key]; found {
			t.Errorf("%q and %q make the same key %s", parts, other, key)
		}
		keys[key] = parts
	}
	for _, parts := range [][]string{{}, {"quest", ""}} {
		if key, err := inbox.BusinessKey(parts...); err == nil {
			t.Errorf("%q make the key %q, want an error", parts, key)
		}
	}
}

// TestDocsShowTheReceiptTable of each database, for those who create it without the command.
func TestDocsShowTheReceiptTable(t *testing.T) {
	docs, err := os.ReadFile("../docs/consumers.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := bare(string(docs))
	for _, dialect := range []postrider.Dialect{postrider.PostgreSQL, postrider.MySQL, postrider.SQLite} {
		tables, err := inbox.NewTables(dialect, "")
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for statement := range strings.SplitSeq(bare(tables.InitSQL()), ";") {
			statement = strings.TrimSpace(statement)
			if !strings.HasPrefix(statement, "CREATE") || !strings.Contains(statement, "inbox_receipts") {
				continue
			}
			found++
			if !strings.Contains(shown, statement) {
				t.Errorf("%v: docs/consumers.md does not have\n%s", dialect, statement)
			}
		}
		if found == 0 {
			t.Errorf("%v: no statement creates the table", dialect)
		}
	}
}

var beside = regexp.MustCompile(`--.*|["` + "`" + `]|IF NOT EXISTS`)

// bare is SQL without comments, quotes and the conditions of CREATE, in single spaces.
func bare(sql string) string {
	return strings.Join(strings.Fields(beside.ReplaceAllString(sql, "")), " ")
}
