package wallet_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"github.com/postrider/postrider/examples/wallet/internal/wallet"
	"github.com/postrider/postrider/sqlstore"
)

// newService makes the service in a schema of its own. The schema is gone after the test.
func newService(t *testing.T) (*wallet.Service, *sql.DB) {
	t.Helper()
	address := os.Getenv("POSTRIDER_TEST_POSTGRES")
	if address == "" {
		t.Fatal("POSTRIDER_TEST_POSTGRES is not set: scripts/services starts the servers")
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	schema := "wallet_" + strings.ToLower(rand.Text())
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()

	db, err := sql.Open("pgx", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	execute(t, db, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { execute(t, db, "DROP SCHEMA "+schema+" CASCADE") })
	store, err := sqlstore.Open(db, sqlstore.Postgres, sqlstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	service, err := wallet.New(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	return service, db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// events lists the events of a key in outbox order.
func events(t *testing.T, db *sql.DB, key string) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(),
		"SELECT aggregate_version || ' ' || event_type || ' ' || payload FROM outbox_events WHERE aggregate_id = $1 ORDER BY id", key)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		list = append(list, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEventsTellOfWhatWasCommittedOnly(t *testing.T) {
	service, db := newService(t)
	handler := service.Handler()
	requests := []struct {
		method, path, body string
		status             int
		answer             string
	}{
		{"PUT", "/wallets/ada", `{"balance": 100}`, 200, `"balance":100`},
		{"POST", "/wallets/ada/debit", `{"amount": 30, "reference": "r-1"}`, 200, `"balance":70`},
		{"POST", "/wallets/ada/credit", `{"amount": 5, "reference": "r-2"}`, 200, `"balance":75`},
		{"POST", "/orders", `{"id": "o-1", "wallet": "ada", "amount": 50}`, 201, `"id":"o-1"`},
		{"GET", "/orders/o-1", "", 200, `"amount":50`},
		{"POST", "/wallets/ada/debit", `{"amount": 26, "reference": "r-3"}`, 422, "too little money"},
		{"POST", "/wallets/ada/debit", `{"amount": 1, "reference": "r-1"}`, 409, "used before"},
		{"POST", "/orders", `{"id": "o-1", "wallet": "ada", "amount": 1}`, 409, "used before"},
		{"POST", "/wallets/bob/debit", `{"amount": 1, "reference": "r-4"}`, 404, "no such"},
		{"POST", "/wallets/ada/debit", `{"amount": -1, "reference": "r-5"}`, 400, "above 0"},
		{"POST", "/wallets/ada/debit", `{"amount": 1, "referenz": "r-6"}`, 400, "referenz"},
		{"GET", "/orders/o-2", "", 404, "no such"},
		{"GET", "/wallets/ada", "", 200, `"balance":25,"version":3`},
	}
	for _, r := range requests {
		recorder := httptest.NewRecorder()
		var body io.Reader = http.NoBody
		if r.body != "" {
			body = strings.NewReader(r.body)
		}
		handler.ServeHTTP(recorder, httptest.NewRequest(r.method, r.path, body))
		if recorder.Code != r.status || !strings.Contains(recorder.Body.String(), r.answer) {
			t.Errorf("%s %s %s: %d %s, want %d and %q", r.method, r.path, r.body, recorder.Code, recorder.Body, r.status, r.answer)
		}
	}

	want := []string{
		`1 WalletDebited {"amount":-30,"balance":70,"reference":"r-1","wallet":"ada"}`,
		`2 WalletCredited {"amount":5,"balance":75,"reference":"r-2","wallet":"ada"}`,
		`3 WalletDebited {"amount":-50,"balance":25,"reference":"order o-1","wallet":"ada"}`,
	}
	if got := events(t, db, "ada"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("events of the wallet:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := events(t, db, "o-1"); len(got) != 1 || got[0] != `1 OrderPlaced {"id":"o-1","wallet":"ada","amount":50}` {
		t.Errorf("events of the order: %q", got)
	}
}

// Without the lock that comes first, events of one wallet would be numbered in another order than their versions.
func TestEventsOfOneWalletAreNumberedInTheOrderOfItsVersions(t *testing.T) {
	const writers, each = 8, 20
	service, db := newService(t)
	if err := service.Create(t.Context(), "ada", 0); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range each {
				entries := []wallet.Entry{
					{Amount: 1, Reference: fmt.Sprintf("%d-%d-a", w, i)},
					{Amount: 1, Reference: fmt.Sprintf("%d-%d-b", w, i), Document: []byte(`{ "kept" : 1.0 }`)},
				}
				if _, err := service.Post(t.Context(), "ada", entries...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	list := events(t, db, "ada")
	if len(list) != 2*writers*each {
		t.Fatalf("%d events, want %d", len(list), 2*writers*each)
	}
	for i, line := range list {
		if !strings.HasPrefix(line, fmt.Sprintf("%d ", i+1)) {
			t.Fatalf("event number %d of the wallet is %q", i+1, line)
		}
		if i%2 == 1 && !strings.HasSuffix(line, `{ "kept" : 1.0 }`) {
			t.Fatalf("the document was not kept as it is: %q", line)
		}
	}
	if w, err := service.Get(t.Context(), "ada"); err != nil || w.Balance != 2*writers*each {
		t.Errorf("wallet %+v, error %v", w, err)
	}
}

func TestHasEntryTellsWhatWasCommitted(t *testing.T) {
	service, _ := newService(t)
	if err := service.Create(t.Context(), "ada", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Post(t.Context(), "ada", wallet.Entry{Amount: 1, Reference: "r-1"}); err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string]bool{"r-1": true, "r-2": false} {
		if found, err := service.HasEntry(t.Context(), "ada", reference); err != nil || found != want {
			t.Errorf("HasEntry(%s) = %v, error %v, want %v", reference, found, err, want)
		}
	}
}
