package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// as returns the table as a role of its own sees it, which owns the side tables' schema and has the given rights on the
// table.
func (m mapped) as(t testing.TB, rights string) mapped {
	t.Helper()
	schema, table, _ := strings.Cut(m.table, ".")
	role, side := schema+"_relay", schema+"_side"
	execute(t, m.db, "CREATE ROLE "+role)
	execute(t, m.db, "CREATE SCHEMA "+side+" AUTHORIZATION "+role)
	owner := m.db
	t.Cleanup(func() {
		execute(t, owner, "DROP OWNED BY "+role)
		execute(t, owner, "DROP ROLE "+role)
	})
	execute(t, m.db, "GRANT USAGE ON SCHEMA "+schema+" TO "+role)
	if rights != "" {
		execute(t, m.db, "GRANT "+rights+" ON "+table+" TO "+role)
	}
	m.mapping.SideSchema = side
	m.db = connect(t, "pgx", withParameter(t, m.dsn, "role", role))
	return m
}

func TestARoleThatMaySelectAndUpdateIsEnough(t *testing.T) {
	m := preset(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES"), "wallet-outbox", "wallet-outbox-postgres.sql", "wallet_outbox")
	execute(t, m.db, `INSERT INTO wallet_outbox (id, aggregate_id, event_type, payload, status, created_at, updated_at)
		SELECT n::text, 'user-1', 'E', '{}', 'PENDING', now(), now() FROM generate_series(1, 5) AS n`)
	m.as(t, "SELECT, UPDATE").workAll(t)
}

func TestARoleThatMaySelectAndDeleteIsEnough(t *testing.T) {
	m := preset(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES"), "debezium", "debezium-postgres.sql", "outbox")
	execute(t, m.db, `INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload)
		SELECT gen_random_uuid(), 'o', '1', 'E', '{}' FROM generate_series(1, 5)`)
	m.as(t, "SELECT, DELETE").workAll(t)
}

// workAll does all that relays and operators do with five events of one key.
func (m mapped) workAll(t *testing.T) {
	t.Helper()
	h := m.hold(t)
	act := operator.Action{Who: "me", Reason: "test"}
	for _, state := range []postrider.State{postrider.StatePublished, postrider.StateDead, postrider.StateDead, postrider.StatePending} {
		h.settle(h.read()[0], state, "no")
	}
	for name, do := range map[string]func() (int, error){
		"Discard": func() (int, error) { return h.Discard(t.Context(), operator.Filter{Limit: 1}, act) },
	} {
		if n, err := do(); n != 1 || err != nil {
			t.Fatalf("%s: %d, %v", name, n, err)
		}
	}
	if n, err := h.Redrive(t.Context(), operator.Filter{}, act); n != 1 || err != nil {
		t.Fatalf("Redrive: %d, %v", n, err)
	}
	if n, err := h.Retry(t.Context(), operator.Filter{}, act); n != 1 || err != nil {
		t.Fatalf("Retry: %d, %v", n, err)
	}
	for len(h.ids()) > 0 {
		h.settle(h.read()[0], postrider.StatePublished, "")
	}
	if _, err := h.Status(t.Context(), "main"); err != nil {
		t.Error(err)
	}
	if _, err := h.Clean(t.Context(), relay.CleanRequest{Limit: 10, Retention: time.Hour}); err != nil && !errors.Is(err, sqlstore.ErrDenied) {
		t.Error(err)
	}
	for _, f := range h.Verify(t.Context()) {
		if f.Level == operator.LevelError {
			t.Errorf("finding %+v", f)
		}
	}
}

func TestEachMissingGrantIsNamed(t *testing.T) {
	m := preset(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES"), "wallet-outbox", "wallet-outbox-postgres.sql", "wallet_outbox").as(t, "SELECT")
	m.init(t)
	m.finds(t, "error", "table "+m.table+": no privilege to UPDATE (run: GRANT UPDATE ON ")
	execute(t, m.db, "REVOKE INSERT ON "+m.mapping.SideSchema+".wallet_outbox_failures FROM "+m.mapping.SideSchema[:len(m.mapping.SideSchema)-len("_side")]+"_relay")
	m.finds(t, "error", "wallet_outbox_failures: no privilege to INSERT")

	d := preset(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES"), "debezium", "debezium-postgres.sql", "outbox").as(t, "SELECT")
	d.init(t)
	d.finds(t, "error", "table "+d.table+": no privilege to DELETE")

	none := preset(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES"), "debezium", "debezium-postgres.sql", "outbox").as(t, "")
	none.init(t)
	none.finds(t, "error", "table "+none.table+": no privilege to SELECT")
}
