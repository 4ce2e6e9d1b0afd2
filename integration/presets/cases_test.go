package presets_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// preset is how one table is filled, and what must arrive.
type preset struct {
	name        string
	servers     []server
	topicPrefix string
	route       string // {topic} stands for the stage's topic
	relay       string // further settings of the relay section, with a comma before them
	unordered   bool   // order is not promised
	exact       bool   // the table keeps the bytes of a payload

	id       func(n int) string // identity of the n-th event
	idHeader string
	columns  string // of the INSERT, as the framework writes it
	table    map[string]string
	values   func(s *stage, e event) []any
	document func(t *testing.T, s *stage, e event) bson.M // with MongoDB, in place of columns, table, values and waiting
	message  func(s *stage, e event) message
	waiting  string // condition on the rows that are not published yet
}

// message is what must arrive for an event, beside its key.
type message struct {
	headers map[string]string
	payload string
}

// insert is the framework's statement.
func (p preset) insert(on server) string {
	n := 0
	mark := func() string {
		n++
		if on.isPostgres() {
			return "$" + strconv.Itoa(n)
		}
		return "?"
	}
	names := strings.Split(p.columns, ", ")
	marks := make([]string, len(names))
	for i, name := range names {
		marks[i] = mark()
		names[i] = p.quote(on, name)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", p.tableOn(on), strings.Join(names, ", "), strings.Join(marks, ", "))
}

var plain = regexp.MustCompile(`^[a-z_]+$`)

func (p preset) quote(on server, name string) string {
	switch {
	case plain.MatchString(name):
		return name
	case on.isPostgres():
		return `"` + name + `"`
	default:
		return "`" + name + "`"
	}
}

func (p preset) tableOn(on server) string {
	if name, ok := p.table[on.driver]; ok {
		return name
	}
	return p.table[""]
}

// left counts the rows that are not published yet.
func (p preset) left(on server) string {
	return "SELECT count(*) FROM " + p.tableOn(on) + " WHERE " + strings.ReplaceAll(p.waiting, `"`, map[bool]string{true: `"`, false: "`"}[on.isPostgres()])
}

func newUUID(int) string { return uuid.NewString() }

// ordered is a UUID whose text ascends, as version 7 has it.
func ordered(int) string { return uuid.Must(uuid.NewV7()).String() }

func number(n int) string { return strconv.Itoa(n) }

var presets = []preset{
	{
		name: "outbox-events", servers: []server{mysql, mariadb}, route: "{sink: main, topic: {topic}}",
		id: newUUID, idHeader: "X-Event-Id",
		table:   map[string]string{"": "outbox_events"},
		columns: "event_id, aggregate_type, aggregate_id, event_type, payload, next_attempt_at, created_at",
		values: func(s *stage, e event) []any {
			return []any{e.id, "order", e.key, "OrderPlaced", e.payload, s.now(), s.now()}
		},
		message: func(s *stage, e event) message {
			return message{map[string]string{"X-Idempotency-Key": e.id, "X-Event-Type": "OrderPlaced", "X-Aggregate-Type": "order"}, e.payload}
		},
		waiting: "status <> 'PUBLISHED'",
	},
	{
		name: "outbox-events", relay: ", claim: row", unordered: true, servers: []server{mysql, mariadb}, route: "{sink: main, topic: {topic}}",
		id: newUUID, idHeader: "X-Event-Id",
		table:   map[string]string{"": "outbox_events"},
		columns: "event_id, aggregate_type, aggregate_id, event_type, payload, next_attempt_at, created_at",
		values: func(s *stage, e event) []any {
			return []any{e.id, "order", e.key, "OrderPlaced", e.payload, s.now(), s.now()}
		},
		message: func(s *stage, e event) message { return message{payload: e.payload} },
		waiting: "status <> 'PUBLISHED'",
	},
	{
		name: "event-outbox", servers: []server{mysql, mariadb}, route: "{sink: main, topic: {topic}}",
		id: number, idHeader: "X-Idempotency-Key",
		table:   map[string]string{"": "event_outbox"},
		columns: "event_id, aggregate_type, aggregate_id, event_type, payload",
		values:  func(s *stage, e event) []any { return []any{e.id, "order", e.key, "OrderPlaced", e.payload} },
		message: func(s *stage, e event) message {
			return message{map[string]string{"X-Event-Id": e.id, "X-Event-Type": "OrderPlaced"}, e.payload}
		},
		waiting: "status <> 'PUBLISHED'",
	},
	{
		name: "wallet-outbox", servers: []server{postgres}, route: "{event_type: PAYMENT_WALLET_DEBITED, sink: main, topic: {topic}}",
		id: newUUID, idHeader: "X-Event-Id",
		table:   map[string]string{"": "wallet_outbox"},
		columns: "id, aggregate_id, event_type, payload, status, created_at, updated_at",
		values: func(s *stage, e event) []any {
			return []any{e.id, e.key, "PAYMENT_WALLET_DEBITED", e.payload, "PENDING", s.now(), s.now()}
		},
		message: func(s *stage, e event) message {
			return message{map[string]string{"X-Event-Type": "PAYMENT_WALLET_DEBITED"}, e.payload}
		},
		waiting: "status <> 'PUBLISHED'",
	},
	{
		name: "outbox-event", servers: []server{mysql, mariadb}, route: "{sink: main}", exact: true,
		id: number, idHeader: "X-Outbox-Id",
		table:   map[string]string{"": "outbox_event"},
		columns: "id, aggregate_type, aggregate_id, event_type, payload, topic, partition_key, status, created_at, updated_at",
		values: func(s *stage, e event) []any {
			return []any{e.id, "order", 7, "OrderPlaced", e.payload, s.topic, e.key, "PENDING", s.now(), s.now()}
		},
		message: func(s *stage, e event) message {
			return message{map[string]string{"X-Event-Type": "OrderPlaced", "X-Aggregate-Type": "order", "X-Aggregate-Id": "7"}, e.payload}
		},
		waiting: "status <> 'PUBLISHED'",
	},
	{
		name: "debezium", servers: []server{postgres, mysql, mariadb}, topicPrefix: "outbox.event.", route: `{sink: main, headers: debezium, topic: "outbox.event.{aggregate_type}"}`,
		id: ordered, idHeader: "id",
		table:   map[string]string{"": "outbox"},
		columns: "id, aggregatetype, aggregateid, type, payload",
		values: func(s *stage, e event) []any {
			return []any{e.id, strings.TrimPrefix(s.topic, "outbox.event."), e.key, "OrderPlaced", e.payload}
		},
		message: func(s *stage, e event) message { return message{payload: e.payload} },
		waiting: "true",
	},
	{
		name: "eventuate-tram", servers: []server{postgres, mysql, mariadb}, route: "{sink: main}",
		id: func(n int) string { return fmt.Sprintf("%016x-0242ac1100020000", n) }, idHeader: "X-Event-Id",
		table:   map[string]string{"pgx": "eventuate.message", "": "message"},
		columns: "id, destination, headers, payload, published, message_partition, creation_time",
		values: func(s *stage, e event) []any {
			return []any{e.id, s.topic, eventuateHeaders(e), e.payload, 0, nil, s.now().UnixMilli()}
		},
		message: func(s *stage, e event) message {
			return message{payload: fmt.Sprintf(`{"payload":%s,"headers":%s}`, quoted(e.payload), eventuateHeaders(e))}
		},
		waiting: "published <> 1",
	},
	{
		name: "cap", servers: []server{postgres, mysql, mariadb}, route: "{sink: main}",
		id: number, idHeader: "cap-msg-id",
		table:   map[string]string{"pgx": "cap.published", "": "`cap.published`"},
		columns: "Id, Version, Name, Content, Retries, Added, ExpiresAt, StatusName",
		values: func(s *stage, e event) []any {
			content := fmt.Sprintf(`{"Headers":{"cap-msg-id":%q,"cap-msg-name":%q,"cap-kafka-key":%q,"cap-corr-id":%q},"Value":%s}`,
				e.id, s.topic, e.key, e.id, e.payload)
			return []any{e.id, "v1", s.topic, content, 0, s.now(), nil, "Scheduled"}
		},
		message: func(s *stage, e event) message {
			return message{map[string]string{"cap-msg-name": s.topic, "cap-corr-id": e.id}, e.payload}
		},
		waiting: `"StatusName" <> 'Succeeded'`,
	},
	{
		name: "domain-events", servers: []server{mongodb}, route: "{sink: main, topic: {topic}}",
		id: objectID, idHeader: "X-Event-Id", document: lessonCompleted,
		message: func(s *stage, e event) message {
			return message{map[string]string{"X-Event-Type": "LessonCompleted", "X-Aggregate-Type": "lesson"}, e.payload}
		},
	},
	{
		name: "domain-events", relay: ", claim: row", unordered: true, servers: []server{mongodb}, route: "{sink: main, topic: {topic}}",
		id: objectID, idHeader: "X-Event-Id", document: lessonCompleted,
		message: func(s *stage, e event) message {
			return message{map[string]string{"X-Event-Type": "LessonCompleted", "X-Aggregate-Type": "lesson"}, e.payload}
		},
	},
}

// objectID is the hex of one, as a driver makes it: those of one process ascend.
func objectID(int) string { return bson.NewObjectID().Hex() }

func lessonCompleted(t *testing.T, s *stage, e event) bson.M {
	t.Helper()
	id, err := bson.ObjectIDFromHex(e.id)
	if err != nil {
		t.Fatal(err)
	}
	var payload bson.D
	if err := bson.UnmarshalExtJSON([]byte(e.payload), false, &payload); err != nil {
		t.Fatal(err)
	}
	return bson.M{
		"_id": id, "domain": "lesson", "objectId": e.key, "eventType": "LessonCompleted", "payload": payload,
		"dedupKey": "LessonCompleted:" + e.id, "status": "PENDING", "attempts": 0, "nextAttemptAt": s.now(),
		"lockedBy": nil, "leaseExpiresAt": nil,
	}
}

func eventuateHeaders(e event) string {
	return fmt.Sprintf(`{"ID":%q,"PARTITION_ID":%q,"event-type":"OrderPlaced","event-aggregate-type":"order","DATE":"Mon, 30 Nov 2026 12:00:00 GMT"}`, e.id, e.key)
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
