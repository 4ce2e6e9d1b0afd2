package store

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// preset maps the table of a file by the preset of the name.
func preset(t testing.TB, d database, name, file, table string) mapped {
	t.Helper()
	p, ok := sqlstore.FindPreset(d.dialect, name)
	if !ok {
		t.Fatalf("there is no preset %s", name)
	}
	d = d.named(table)
	d.create(t, "testdata/tables/"+file)
	return mapByPreset(d, p)
}

func mapByPreset(d database, p sqlstore.Preset) mapped {
	return mapped{database: d, mapping: p.Mapping, config: sqlstore.Config{DeletePublished: p.DeletePublished}}
}

func TestPresetWalletOutbox(t *testing.T) {
	m := preset(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES"), "wallet-outbox", "wallet-outbox-postgres.sql", "wallet_outbox")
	for _, id := range []string{"b", "a", "c"} {
		execute(t, m.db, `INSERT INTO wallet_outbox (id, aggregate_id, event_type, payload, status, created_at, updated_at)
			VALUES ($1, 'user-1', 'PAYMENT_WALLET_DEBITED', '{"amount": 10}', 'PENDING', now() AT TIME ZONE 'UTC', now() AT TIME ZONE 'UTC')`,
			"0192f0c1-9a3b-7c4d-8e5f-0123456789a"+id)
	}
	first := m.live(t, 3)
	want(t, first, relay.Event{
		ID: "1", EventID: "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", AggregateType: "wallet", AggregateID: "user-1",
		EventType: "PAYMENT_WALLET_DEBITED", Payload: []byte(`{"amount": 10}`), ContentType: "application/json",
	})
	m.rows(t, "SELECT seq || status || (updated_at > created_at) FROM wallet_outbox ORDER BY seq", "1PUBLISHEDtrue", "2PUBLISHEDtrue", "3PUBLISHEDtrue")
}

func TestPresetDebezium(t *testing.T) {
	m := preset(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES"), "debezium", "debezium-postgres.sql", "outbox")
	for _, id := range []string{"1", "2", "3"} {
		execute(t, m.db, `INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload)
			VALUES ($1, 'Order', '1', 'OrderCreated', '{"id": 1, "total": 59.99}')`, "406c07f3-26f0-4eea-a50c-109940064b8"+id)
	}
	first := m.live(t, 3)
	want(t, first, relay.Event{
		ID: "406c07f3-26f0-4eea-a50c-109940064b81", EventID: "406c07f3-26f0-4eea-a50c-109940064b81", AggregateType: "Order", AggregateID: "1",
		EventType: "OrderCreated", Payload: []byte(`{"id": 1, "total": 59.99}`), ContentType: "application/json",
	})
	m.rows(t, "SELECT id::text FROM outbox")
	m.rows(t, "SELECT event FROM outbox_failures")
}

func TestPresetEventuateTram(t *testing.T) {
	m := preset(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES"), "eventuate-tram", "eventuate-tram-postgres.sql", "message")
	for _, id := range []string{"1", "2", "3"} {
		execute(t, m.db, `INSERT INTO message (id, destination, headers, payload, creation_time)
			VALUES ($1::text, 'io.example.Order', '{"PARTITION_ID":"7","event-aggregate-type":"io.example.Order","DATE":"Mon, 1 Jan 2024 00:00:00 GMT",
			"event-aggregate-id":"7","event-type":"io.example.OrderCreated","DESTINATION":"io.example.Order","ID":"'||$1::text||'"}', '{"total":"1"}',
			(extract(epoch FROM now()) * 1000)::bigint)`, "0000018c-0242ac110002000"+id)
	}
	first := m.live(t, 3)
	if first.Age < 0 || first.Age > time.Minute {
		t.Errorf("age %v by a creation_time in milliseconds", first.Age)
	}
	if len(first.Headers) != 7 || first.Headers["event-type"] != "io.example.OrderCreated" {
		t.Errorf("headers %v", first.Headers)
	}
	if !strings.HasPrefix(string(first.Payload), `{"payload":"{\"total\":\"1\"}","headers":{"PARTITION_ID":"7"`) {
		t.Errorf("payload %s", first.Payload)
	}
	first.Headers, first.Payload = nil, nil
	want(t, first, relay.Event{
		ID: "0000018c-0242ac1100020001", EventID: "0000018c-0242ac1100020001", AggregateType: "io.example.Order", AggregateID: "7",
		EventType: "io.example.OrderCreated", Topic: "io.example.Order", ContentType: "application/json",
	})
	m.rows(t, "SELECT published::text FROM message", "1", "1", "1")
	m.rows(t, "SELECT event FROM message_failures")
}

func TestPresetCAP(t *testing.T) {
	m := preset(t, newPostgres(t, "POSTRIDER_TEST_POSTGRES"), "cap", "cap-postgres.sql", "published")
	for _, id := range []string{"1", "2", "3"} {
		execute(t, m.db, `INSERT INTO published ("Id", "Version", "Name", "Content", "Retries", "Added", "ExpiresAt", "StatusName")
			VALUES ($1::bigint, 'v1', 'order.created', '{"Headers":{"cap-callback-name":null,"cap-msg-id":"'||$1||'","cap-corr-id":"'||$1||'","cap-corr-seq":"0",
			"cap-msg-name":"order.created","cap-msg-type":"Order","cap-senttime":"1/1/2024 00:00:00","cap-kafka-key":"k"},"Value":{"Id":7}}',
			0, now() AT TIME ZONE 'UTC', NULL, 'Scheduled')`, "134256789012345678"+id)
	}
	first := m.live(t, 3)
	if len(first.Headers) != 7 || first.Headers["cap-msg-type"] != "Order" {
		t.Errorf("headers %v", first.Headers)
	}
	first.Headers = nil
	want(t, first, relay.Event{
		ID: "1342567890123456781", EventID: "1342567890123456781", AggregateType: "cap", AggregateID: "k", EventType: "order.created",
		Topic: "order.created", Payload: []byte(`{"Id":7}`), ContentType: "application/json",
	})
	m.rows(t, `SELECT "StatusName" || "Retries" FROM published ORDER BY "Id"`, "Succeeded0", "Succeeded1", "Succeeded0")
}

// live takes n events of one key through their lives: the first is published, the second fails, is tried again and
// published, the third dies, is redriven and published. It returns the first as it was read.
func (m mapped) live(t *testing.T, n int) relay.Event {
	t.Helper()
	s := m.init(t)
	var log []string
	for _, f := range s.Verify(t.Context()) {
		if log = append(log, f.Subject+" "+f.Message); f.Level == operator.LevelError {
			t.Errorf("finding %+v", f)
		}
	}
	a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	leases := ownAll(t, s, a)
	events := readSome(t, s, everything(n))
	settle := func(e relay.Event, one relay.Settlement) {
		t.Helper()
		one.ID, one.Lease = e.ID, leases[e.Shard]
		if ids, err := s.Settle(t.Context(), a, []relay.Settlement{one}); err != nil || len(ids) != 1 || ids[0] != e.ID {
			t.Fatalf("settled %v, %v (%v)", ids, err, log)
		}
	}
	next := func(n int, id string, retries int) relay.Event {
		t.Helper()
		e := readSome(t, s, everything(n))[0]
		if e.ID != id || e.RetryCount != retries {
			t.Fatalf("read %s with %d attempts, want %s with %d", e.ID, e.RetryCount, id, retries)
		}
		return e
	}
	done := relay.Settlement{State: postrider.StatePublished, PublishedTo: "test:1"}
	settle(events[0], done)
	settle(events[1], relay.Settlement{State: postrider.StatePending, RetryCount: 1, Error: strings.Repeat("no ", 500)})
	settle(next(1, events[1].ID, 1), done) // alone: its key waits for it
	settle(next(1, events[2].ID, 0), relay.Settlement{State: postrider.StateDead, RetryCount: 1, Error: "refused"})
	readSome(t, s, relay.ReadRequest{Shards: everything(0).Shards, PerShard: 1, MaxBytes: 1})
	if groups, err := s.DeadGroups(t.Context(), 10); err != nil || len(groups) != 1 || groups[0].Error != "refused" || groups[0].Sample != events[2].EventID {
		t.Errorf("dead groups %+v, %v", groups, err)
	}
	if row, err := s.Event(t.Context(), events[2].EventID); err != nil || row.Status != postrider.StateDead || row.ID != events[2].ID {
		t.Errorf("the dead event is shown as %+v, %v", row, err)
	}
	if n, err := s.Redrive(t.Context(), operator.Filter{State: postrider.StateDead}, operator.Action{Who: "me"}); n != 1 || err != nil {
		t.Fatalf("redrove %d, %v", n, err)
	}
	settle(next(1, events[2].ID, 0), done)
	if b, err := s.Backlog(t.Context()); err != nil || b != (relay.Backlog{}) {
		t.Errorf("backlog %+v, %v", b, err)
	}
	return events[0]
}

// want compares an event with what it should be, apart from its shard and age.
func want(t *testing.T, got, want relay.Event) {
	t.Helper()
	if got.ID != want.ID || got.EventID != want.EventID || got.AggregateType != want.AggregateType || got.AggregateID != want.AggregateID || got.PartitionKey != want.PartitionKey ||
		got.EventType != want.EventType || got.Topic != want.Topic || got.ContentType != want.ContentType ||
		string(got.Payload) != string(want.Payload) || got.Malformed != nil || len(got.Headers) != 0 || got.AggregateVersion != nil {
		t.Errorf("read %+v, payload %s, want %+v", got, got.Payload, want)
	}
}

// rows compares what a query returns.
func (m mapped) rows(t testing.TB, query string, want ...string) {
	t.Helper()
	got := values(t, m.db, query)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: got %q, want %q", query, got, want)
	}
}

func values(t testing.TB, db *sql.DB, query string) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(context.WithoutCancel(t.Context()), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}
