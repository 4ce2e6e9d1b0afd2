package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/postrider/postrider/mongo"
	"github.com/postrider/postrider/sqlstore"
)

func TestEveryValueOfAnExistingTableIsRead(t *testing.T) {
	c := parseFile(t, "testdata/valid/existing.yaml", nil)
	want := Outbox{
		DSN: "postgres://db/app", Database: Postgres, Table: "app.messages", Payload: PayloadBinary,
		Mapping: &sqlstore.Mapping{
			ID: "seq", Order: "added", EventID: "uuid", AggregateType: "'order'", AggregateID: "order_id",
			PartitionKey: "customer_id", EventType: "(lower(kind))", AggregateVersion: "version", Topic: "destination",
			Payload: "body", ContentType: "mime", Headers: "meta", DedupKey: "dedup", Status: "state", PublishedAt: "sent_at",
			RetryCount: "attempts", NextAttemptAt: "due_at", LastError: "error", UpdatedAt: "changed_at", PublishedTo: "sent_to",
			CreatedAt:   "inserted_at",
			HeaderTerms: map[string]string{"X-Tenant": "tenant_id", "X-Region": "'eu'"},
			Words: sqlstore.Words{
				Pending: []string{"NEW", "0"}, Processing: "SENDING", Published: "SENT", Dead: "FAILED", Discarded: "DROPPED",
			},
			Filter: "tenant_id <> 'test'", TimeZone: "+09:00", SideSchema: "postrider",
		},
	}
	if !reflect.DeepEqual(c.Outbox, want) {
		t.Errorf("got:\n%+v\nwant:\n%+v", c.Outbox.Mapping, want.Mapping)
	}
	if c.Relay.OnPublished != KeepPublished || c.Relay.Retention != time.Hour {
		t.Errorf("relay is %+v", c.Relay)
	}
}

func TestPresetIsWhatTheFileDoesNotSay(t *testing.T) {
	c := parseFile(t, "testdata/valid/preset.yaml", nil)
	preset, _ := sqlstore.FindPreset(sqlstore.Postgres, "wallet-outbox")
	want := preset.Mapping
	want.CreatedAt, want.Topic, want.Words.Dead = "", "destination", "BROKEN"
	want.HeaderTerms = map[string]string{"X-Tenant": "tenant"}
	if c.Outbox.Table != "wallet_outbox" || !reflect.DeepEqual(*c.Outbox.Mapping, want) {
		t.Errorf("table %s, got:\n%+v\nwant:\n%+v", c.Outbox.Table, c.Outbox.Mapping, want)
	}
	if again, _ := sqlstore.FindPreset(sqlstore.Postgres, "wallet-outbox"); !reflect.DeepEqual(again, preset) {
		t.Errorf("the preset was changed: %+v", again)
	}
}

func TestCollectionIsReadAsATableIs(t *testing.T) {
	c := parseFile(t, "testdata/valid/collection.yaml", nil)
	want := Outbox{
		DSN: "mongodb://db:27017/app", Database: MongoDB, Table: "outbox", Payload: PayloadJSON, Preset: "domain-events",
		Documents: &mongo.Mapping{
			Order: "position", EventID: "meta.id", AggregateType: "domain", AggregateID: "payload.userId, objectId", EventType: "eventType",
			Topic: "meta.topic", ContentType: "meta.type", DedupKey: "dedupKey", Payload: "payload", Headers: "meta.headers",
			HeaderTerms: map[string]string{"X-Tenant": "tenant"}, Status: "status",
			Words: mongo.Words{
				Pending: []string{"PENDING", "AGAIN"}, Processing: "SENDING", Published: "DONE", Dead: "BROKEN", Discarded: "DROPPED",
			},
			RetryCount: "attempts", NextAttemptAt: "nextAttemptAt", LastError: "lastError", UpdatedAt: "changedAt", PublishedAt: "sentAt",
			PublishedTo: "sentTo", ClaimToken: "lockedBy", ProcessingUntil: "leaseExpiresAt", CreatedAt: "createdAt",
			Filter: `{"tenant": "eu"}`,
		},
	}
	if !reflect.DeepEqual(c.Outbox, want) {
		t.Errorf("got:\n%+v\nwant:\n%+v", c.Outbox.Documents, want.Documents)
	}
	if c.Relay.Claim != ClaimRow || c.Relay.OnPublished != KeepPublished || c.Relay.Retention != 0 {
		t.Errorf("relay is %+v", c.Relay)
	}
}

// Rows of a table that is not ours are deleted only where nothing else is possible, or on demand.
func TestRowsOfOthersAreKept(t *testing.T) {
	c := parseFile(t, "testdata/valid/preset.yaml", nil)
	if c.Relay.OnPublished != KeepPublished || c.Relay.Retention != 0 {
		t.Errorf("%s, retention %v", c.Relay.OnPublished, c.Relay.Retention)
	}
}

func TestDebeziumPresetRoutesAsItsRouterDoes(t *testing.T) {
	c := parseFile(t, "testdata/valid/debezium.yaml", nil)
	if c.Outbox.Table != "outboxevent" || c.Relay.OnPublished != DeletePublished {
		t.Errorf("table %s, on_published %s", c.Outbox.Table, c.Relay.OnPublished)
	}
	want := []Route{
		{AggregateType: "order", Sink: "main", Topic: "orders", Key: "{key}", Headers: HeadersPostrider, Retry: c.Relay.Retry, OnDead: ContinueKey},
		{Sink: "main", Topic: "outbox.event.{aggregate_type}", Key: "{key}", Headers: HeadersDebezium, Retry: c.Relay.Retry, OnDead: ContinueKey},
	}
	if !reflect.DeepEqual(c.Routes, want) {
		t.Errorf("got %+v", c.Routes)
	}
}
