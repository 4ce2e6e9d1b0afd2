package store

import (
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// eachPreset maps the table of a preset, made by its own DDL, on both servers.
func eachPreset(t *testing.T, name, ddl string, test func(t *testing.T, m mapped)) {
	eachMySQL(t, func(t *testing.T, d database) {
		p, ok := sqlstore.FindPreset(d.dialect, name)
		if !ok {
			t.Fatalf("there is no preset %s", name)
		}
		d.create(t, "../presets/testdata/"+ddl)
		test(t, mapByPreset(d.named(p.Table), p))
	})
}

func TestPresetOutboxEventsOfMySQL(t *testing.T) {
	eachPreset(t, "outbox-events", "outbox-events.sql", func(t *testing.T, m mapped) {
		for _, id := range []string{"b", "a", "c"} {
			execute(t, m.db, `INSERT INTO outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, next_attempt_at, created_at)
				VALUES (?, 'order', '17', 'OrderPlaced', '{"total": 10}', utc_timestamp(), utc_timestamp())`, "0192f0c1-9a3b-7c4d-8e5f-0123456789a"+id)
		}
		want(t, m.live(t, 3), relay.Event{
			ID: "1", EventID: "0192f0c1-9a3b-7c4d-8e5f-0123456789ab", AggregateType: "order", AggregateID: "17", EventType: "OrderPlaced",
			Payload: []byte(`{"total": 10}`), ContentType: "application/json",
		})
		m.rows(t, "SELECT concat(id, status, published_at >= created_at, claim_token IS NULL, retry_count) FROM outbox_events ORDER BY id",
			"1PUBLISHED110", "2PUBLISHED111", "3PUBLISHED110")
	})
}

func TestPresetEventOutboxOfMySQL(t *testing.T) {
	eachPreset(t, "event-outbox", "event-outbox.sql", func(t *testing.T, m mapped) {
		for range 3 {
			execute(t, m.db, `INSERT INTO event_outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', 'A-1', 'OrderPlaced', '{"total": 10}')`)
		}
		first := m.live(t, 3)
		if first.Age > time.Minute {
			t.Errorf("age %v by a TIMESTAMP", first.Age)
		}
		want(t, first, relay.Event{
			ID: "1", EventID: "1", AggregateType: "order", AggregateID: "A-1", EventType: "OrderPlaced",
			Payload: []byte(`{"total": 10}`), ContentType: "application/json",
		})
		m.rows(t, "SELECT concat(event_id, status, abs(timestampdiff(SECOND, created_at, published_at)) < 60) FROM event_outbox ORDER BY event_id",
			"1PUBLISHED1", "2PUBLISHED1", "3PUBLISHED1")
	})
}

func TestPresetOutboxEventOfMySQL(t *testing.T) {
	eachPreset(t, "outbox-event", "outbox-event.sql", func(t *testing.T, m mapped) {
		for n := range 3 {
			execute(t, m.db, `INSERT INTO outbox_event (aggregate_type, aggregate_id, event_type, payload, topic, partition_key, status, created_at)
				VALUES ('order', ?, 'OrderPlaced', '{"total":  1.0}', 'orders', 'customer-7', 'PENDING', utc_timestamp(6))`, 41+n)
		}
		want(t, m.live(t, 3), relay.Event{
			ID: "1", EventID: "1", AggregateType: "order", AggregateID: "41", PartitionKey: "customer-7", EventType: "OrderPlaced", Topic: "orders",
			Payload: []byte(`{"total":  1.0}`), ContentType: "application/json",
		})
		m.rows(t, "SELECT concat(id, status, updated_at >= created_at, error_message IS NULL) FROM outbox_event ORDER BY id",
			"1PUBLISHED11", "2PUBLISHED11", "3PUBLISHED11")
	})
}

func TestPresetDebeziumOfMySQL(t *testing.T) {
	eachPreset(t, "debezium", "debezium.mysql.sql", func(t *testing.T, m mapped) {
		for _, id := range []string{"1", "2", "3"} {
			execute(t, m.db, `INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload)
				VALUES (?, 'Order', '1', 'OrderCreated', '{"id": 1, "total": 59.99}')`, "406c07f3-26f0-4eea-a50c-109940064b8"+id)
		}
		want(t, m.live(t, 3), relay.Event{
			ID: "406c07f3-26f0-4eea-a50c-109940064b81", EventID: "406c07f3-26f0-4eea-a50c-109940064b81", AggregateType: "Order", AggregateID: "1",
			EventType: "OrderCreated", Payload: []byte(`{"id": 1, "total": 59.99}`), ContentType: "application/json",
		})
		m.rows(t, "SELECT id FROM outbox")
		m.rows(t, "SELECT event FROM outbox_failures")
	})
}

func TestPresetEventuateTramOfMySQL(t *testing.T) {
	eachPreset(t, "eventuate-tram", "eventuate-tram.mysql.sql", func(t *testing.T, m mapped) {
		for _, id := range []string{"1", "2", "3"} {
			execute(t, m.db, `INSERT INTO message (id, destination, headers, payload, creation_time)
				VALUES (concat('0000018c-0242ac110002000', ?), 'io.example.Order',
				'{"PARTITION_ID":"7","event-aggregate-type":"io.example.Order","event-type":"io.example.OrderCreated","note":null}', '{"total":"1"}',
				unix_timestamp() * 1000)`, id)
		}
		first := m.live(t, 3)
		if first.Age < 0 || first.Age > time.Minute {
			t.Errorf("age %v by a creation_time in milliseconds", first.Age)
		}
		if len(first.Headers) != 3 || first.Headers["event-type"] != "io.example.OrderCreated" {
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
		m.rows(t, "SELECT published FROM message", "1", "1", "1")
	})
}

func TestPresetCAPOfMySQL(t *testing.T) {
	eachPreset(t, "cap", "cap.mysql.sql", func(t *testing.T, m mapped) {
		for _, id := range []string{"1", "2", "3"} {
			execute(t, m.db, "INSERT INTO `cap.published` (`Id`, `Version`, `Name`, `Content`, `Retries`, `Added`, `ExpiresAt`, `StatusName`)"+`
				VALUES (?, 'v1', 'order.created', concat('{"Headers":{"cap-callback-name":null,"cap-msg-id":"', ?,
				'","cap-msg-type":"Order","cap-kafka-key":"k"},"Value":{"Id":7}}'), 0, utc_timestamp(), NULL, 'Scheduled')`,
				"134256789012345678"+id, "134256789012345678"+id)
		}
		first := m.live(t, 3)
		if len(first.Headers) != 3 || first.Headers["cap-msg-type"] != "Order" {
			t.Errorf("headers %v", first.Headers)
		}
		if payload := strings.ReplaceAll(string(first.Payload), " ", ""); payload != `{"Id":7}` {
			t.Errorf("payload %s", first.Payload)
		}
		first.Headers, first.Payload = nil, nil
		want(t, first, relay.Event{
			ID: "1342567890123456781", EventID: "1342567890123456781", AggregateType: "cap", AggregateID: "k", EventType: "order.created",
			Topic: "order.created", ContentType: "application/json",
		})
		m.rows(t, "SELECT concat(`StatusName`, `Retries`) FROM `cap.published` ORDER BY `Id`", "Succeeded0", "Succeeded1", "Succeeded0")
	})
}
