package wiring

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/relay"
)

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("postrider.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const everythingSet = `
outbox: {dsn: "sqlite:orders.db"}
relay:
  name: orders
  claim: shard
  version_gap: continue after 90s
  shards: 8
  batch: 10
  max_in_flight_events: 20
  max_in_flight_bytes: 1MiB
  lease: 9s
  publish_timeout: 3s
  poll: {min: 1ms, max: 2ms}
  retention: 1h
  cleanup: {interval: 2s, chunk: 5}
  grace: 4s
  retry: {schedule: [1s, 2s], jitter: 10%}
  on_dead: hold
sinks: {main: {type: stdout}}
routes:
  - {aggregate_type: order, event_type: Order*, sink: main, topic: orders, key: "{aggregate_type}-{key}", headers: debezium, on_dead: continue,
     set_headers: {source: shop}}
  - {sink: main, retry: {backoff: {initial: 1s, max: 1m, attempts: 7}}}
`

func TestRelayConfig(t *testing.T) {
	got := RelayConfig(parse(t, everythingSet), nil)
	schedule := relay.RetryPolicy{Schedule: []time.Duration{time.Second, 2 * time.Second}, Jitter: 0.1}
	backoff := relay.RetryPolicy{Initial: time.Second, Ceiling: time.Minute, Attempts: 7, Jitter: 0.1}
	want := relay.Config{
		Name: "orders", Claim: relay.ClaimShard, VersionGap: 90 * time.Second, Shards: 8, Batch: 10, MaxInFlight: 20, MaxInFlightBytes: 1 << 20,
		Lease: 9 * time.Second, PublishTimeout: 3 * time.Second, PollMin: time.Millisecond, PollMax: 2 * time.Millisecond,
		Retention: time.Hour, CleanEvery: 2 * time.Second, CleanChunk: 5, Grace: 4 * time.Second, Retry: schedule, OnDead: relay.OnDeadHold,
		Routes: []relay.Route{
			{AggregateType: "order", EventType: "Order*", Sink: "main", Topic: "orders", Key: "{aggregate_type}-{key}",
				Headers: relay.HeadersDebezium, SetHeaders: map[string]string{"source": "shop"}, Retry: &schedule, OnDead: relay.OnDeadContinue},
			{Sink: "main", Topic: "{aggregate_type}", Key: "{key}", Headers: relay.HeadersPostrider, Retry: &backoff, OnDead: relay.OnDeadHold},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestRowClaims(t *testing.T) {
	c := parse(t, `{outbox: {dsn: "sqlite:a.db"}, relay: {claim: row}, sinks: {main: {type: stdout}}, routes: [{sink: main}]}`)
	if got := RelayConfig(c, nil); got.Claim != relay.ClaimRow || got.VersionGap != 0 {
		t.Errorf("claim %q, version gap %v", got.Claim, got.VersionGap)
	}
}

func TestDeletedEventsNeedNoCleaning(t *testing.T) {
	c := parse(t, `{outbox: {dsn: "sqlite:a.db"}, relay: {on_published: delete}, sinks: {main: {type: stdout}}, routes: [{sink: main}]}`)
	if got := RelayConfig(c, nil); got.Retention != 0 {
		t.Errorf("retention %v", got.Retention)
	}
}

func TestTopicsOf(t *testing.T) {
	topics, open := topicsOf("main", []config.Route{
		{Sink: "other", Topic: "elsewhere"},
		{Sink: "main", Topic: "orders"},
		{Sink: "main", Topic: "orders", EventType: "OrderPaid"},
		{Sink: "main", Topic: "{aggregate_type}.{event_type}", AggregateType: "user", EventType: "UserLeft"},
		{Sink: "main", Topic: "{aggregate_type}", AggregateType: "shop*"},
		{Sink: "main", Topic: "{aggregate_id}"},
	})
	if want := []string{"orders", "user.UserLeft"}; !reflect.DeepEqual(topics, want) {
		t.Errorf("topics %q, want %q", topics, want)
	}
	if want := []string{"{aggregate_id}", "{aggregate_type}"}; !reflect.DeepEqual(open, want) {
		t.Errorf("open %q, want %q", open, want)
	}
}

func TestParsePostgres(t *testing.T) {
	c, err := parsePostgres("postgres://app:s3cret@db:5432/orders")
	if err != nil {
		t.Fatal(err)
	}
	if c.ConnectTimeout != connectTimeout || c.RuntimeParams["application_name"] != "postrider" ||
		c.DefaultQueryExecMode != pgx.QueryExecModeCacheDescribe {
		t.Errorf("what the DSN leaves open: %v, %v, %v", c.ConnectTimeout, c.RuntimeParams, c.DefaultQueryExecMode)
	}
	c, err = parsePostgres("host=db user=app dbname=orders connect_timeout=2 application_name=mine default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	if c.ConnectTimeout != 2*time.Second || c.RuntimeParams["application_name"] != "mine" ||
		c.DefaultQueryExecMode != pgx.QueryExecModeSimpleProtocol {
		t.Errorf("what the DSN says: %v, %v, %v", c.ConnectTimeout, c.RuntimeParams, c.DefaultQueryExecMode)
	}
}

func TestUnparsableAddressesKeepTheirPassword(t *testing.T) {
	for _, dsn := range []string{
		"postgres://app:s3cret%zz@db:5432/orders",
		"postgres://app:s3cret@db:port/orders",
		"postgres://app:s3cret@db:5432/orders?sslmode=perhaps",
		"postgres://app:s3:cret@db:5432:1/orders",
		"host=db port=none password=s3cret",
		"host=db port=none password = s3cret",
	} {
		_, err := openPostgres(dsn)
		if err == nil {
			t.Errorf("%s: no error", config.MaskDSN(dsn))
		} else if strings.Contains(err.Error(), "cret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestMySQLAddresses(t *testing.T) {
	for _, dsn := range []string{
		"mysql://app:s3cret@127.0.0.1:1/orders", "mysql://127.0.0.1:1/orders?tls=true",
	} {
		db, err := openMySQL(dsn)
		if err != nil {
			t.Errorf("%s: %v", config.MaskDSN(dsn), err)
			continue
		}
		if err := db.PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%s does not lead to its address: %v", config.MaskDSN(dsn), err)
		}
		db.Close()
	}
	for _, dsn := range []string{
		"mysql://app:s3cret@db:port/orders", "mysql://app:s3cret%zz@db/orders", "mysql://app:s3cret@db", "mysql://app:s3cret@tcp(db:3306)/orders",
		"mysql://app:s3cret@db/orders?tls=nowhere", "mysql://app:s3cret@db/orders?timeout=s3cret", "mysql://app:s3cret@db/orders?multiStatements=true",
	} {
		if db, err := openMySQL(dsn); err == nil {
			t.Errorf("%s: no error", config.MaskDSN(dsn))
			db.Close()
		} else if strings.Contains(err.Error(), "app:s3cret") || strings.Contains(err.Error(), "s3cret@") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestMongoDBAddresses(t *testing.T) {
	client, database, err := connectMongoDB("mongodb://app:s3cret@127.0.0.1:1,127.0.0.1:2/orders?replicaSet=rs")
	if err != nil || database != "orders" {
		t.Fatalf("database %q, %v", database, err)
	}
	if err := client.Disconnect(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dsn := range []string{
		"mongodb://app:s3c/ret@db:27017/orders", "mongodb://app:s3cret@db:port/orders", "mongodb://app:s3cret@/orders",
		"mongodb://app:s3cr%et@db/orders", "mongodb://app:s3cret@db/orders?w=0&journal=true",
	} {
		if _, _, err := connectMongoDB(dsn); err == nil {
			t.Errorf("%s: no error", config.MaskDSN(dsn))
		} else if strings.Contains(err.Error(), "s3c") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestOutboxErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.db")
	for _, test := range []struct {
		name, dsn string
		blamed    bool
		want      string
	}{
		{"no database", "mongodb://app:s3cret@db:27017", true, "outbox.dsn: names no database"},
		{"no collection", "mongodb://app:s3cret@db:27017/orders", true, "outbox: "},
		{"unparsable", "postgres://app:s3cret@db:port/orders", true, "outbox.dsn"},
		{"no file", "sqlite:" + missing, false, "postrider init"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := parse(t, everythingSet)
			c.Outbox.DSN = config.Secret(test.dsn)
			scheme, _, _ := strings.Cut(test.dsn, ":")
			c.Outbox.Database = config.Database(scheme)
			if test.name == "no collection" {
				c.Outbox.Table = ""
			}
			_, err := OpenOutbox(c)
			var mistake *ConfigError
			if err == nil || errors.As(err, &mistake) != test.blamed || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the database was created")
	}
}

func TestSQLiteFile(t *testing.T) {
	for dsn, want := range map[string]string{
		"sqlite:orders.db": "orders.db", "sqlite:/var/lib/orders.db": "/var/lib/orders.db",
		"sqlite:///var/lib/orders.db": "/var/lib/orders.db", "sqlite://orders.db": "orders.db",
	} {
		if got := sqliteFile(dsn); got != want {
			t.Errorf("%s: got %s, want %s", dsn, got, want)
		}
	}
}

func TestSinkWithMissingCertificate(t *testing.T) {
	c := parse(t, `
outbox: {dsn: "sqlite:a.db"}
sinks: {main: {type: kafka, brokers: ["localhost:9092"], tls: {ca: /nowhere/ca.pem}}}
routes: [{sink: main}]
`)
	_, err := OpenSinks(t.Context(), c.Sinks, io.Discard, slog.New(slog.DiscardHandler))
	var mistake *ConfigError
	if !errors.As(err, &mistake) || mistake.Path != "sinks.main" || !strings.Contains(err.Error(), "/nowhere/ca.pem") {
		t.Errorf("got %v", err)
	}
}

func TestSinksAreOpenedInOrder(t *testing.T) {
	c := parse(t, `
outbox: {dsn: "sqlite:a.db"}
sinks:
  kafka: {type: kafka, brokers: ["127.0.0.1:1"], batch: 50, sasl: {mechanism: scram-sha-256, username: app, password: s3cret}}
  nats: {type: nats, url: "nats://127.0.0.1:1"}
  local: {type: nats, embedded: {dir: `+t.TempDir()+`, subjects: ["events.>"]}, stream: EVENTS}
  rabbit: {type: rabbitmq, servers: ["amqps://127.0.0.1:1/shop"], user: app, password: s3cret, tls: {}, unroutable: dead,
    unroutable_by: {audit: allow}, declare: [{name: orders, kind: topic}], max_message_bytes: 1MiB}
  redis: {type: redis, addresses: ["127.0.0.1:1"], master: shop, user: app, password: s3cret, sentinel_user: s, sentinel_password: s3cret,
    db: 1, tls: {}, max_message_bytes: 1MiB, idempotent_for: 1h, replicas: 1, fsync: true, trim: safe, max_entries: 10}
  hook: {type: webhook, url: "https://127.0.0.1:1/s3cret", secrets: [whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0], tls: {}, concurrency: 2,
    timeout: 1s, allow_private: true}
  out: {type: stdout}
routes: [{sink: local, topic: "events.{aggregate_type}"}]
`)
	sinks, err := OpenSinks(t.Context(), c.Sinks, io.Discard, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer sinks.Close()
	var got []string
	for _, s := range sinks.Named {
		got = append(got, fmt.Sprintf("%s: %s %d", s.Name, s.Type, s.Batch))
	}
	if want := []string{"kafka: kafka 50", "nats: nats 0", "local: nats 0", "rabbit: rabbitmq 0", "redis: redis 0", "hook: webhook 8", "out: stdout 0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	outcomes := sinks.Named[2].Sink.Publish(t.Context(), []relay.Message{{EventID: "e1", Key: "k", Topic: "events.order"}})
	if outcomes[0].Class != relay.ClassPublished {
		t.Errorf("the embedded server does not take what the route sends: %+v", outcomes)
	}
}

const severalSinks = `
outbox: {dsn: "sqlite:orders.db"}
relay: {claim: row, batch: 100, max_in_flight_events: 240, max_in_flight_bytes: 3MiB}
sinks: {main: {type: kafka, brokers: ["a:1"]}, hooks: {type: stdout}, other: {type: stdout}}
routes:
  - {aggregate_type: order, to: [{sink: hooks, topic: hooks}, {sink: main, headers: cloudevents}]}
  - {aggregate_type: user, sink: other}
  - {sinks: [hooks], topic: rest}
`

// What is in flight in all relays together has the limit that is configured for one.
func TestRelaysOfDestinations(t *testing.T) {
	c := parse(t, severalSinks)
	outbox, err := CreateOutbox(c)
	if err != nil {
		t.Fatal(err)
	}
	defer outbox.Close()
	main := RelayConfig(c, nil)
	configs := []relay.Config{main}
	for _, d := range outbox.Destinations {
		configs = append(configs, d.RelayConfig(c))
	}
	for _, cfg := range configs {
		if cfg.MaxInFlight != 80 || cfg.Batch != 80 || cfg.MaxInFlightBytes != 1<<20 || cfg.Claim != relay.ClaimRow || cfg.Name != "default" {
			t.Errorf("%d events in flight, batch %d, %d bytes, claim %s, name %s", cfg.MaxInFlight, cfg.Batch, cfg.MaxInFlightBytes, cfg.Claim, cfg.Name)
		}
	}
	wantRoutes(t, main.Routes,
		relay.Route{AggregateType: "order", Sink: FanOut, Topic: "outbox_events_to_main,outbox_events_to_hooks", KeepTopic: true},
		relay.Route{AggregateType: "user", Sink: "other", Topic: "{aggregate_type}"},
		relay.Route{Sink: FanOut, Topic: "outbox_events_to_hooks", KeepTopic: true})
	wantRoutes(t, configs[1].Routes, relay.Route{AggregateType: "order", Sink: "main", Topic: "{aggregate_type}", Headers: relay.HeadersCloudEvents})
	wantRoutes(t, configs[2].Routes,
		relay.Route{AggregateType: "order", Sink: "hooks", Topic: "hooks"}, relay.Route{Sink: "hooks", Topic: "rest"})
	if main.Restore != nil || configs[1].Restore == nil {
		t.Error("what is restored must be copies, and all copies must be")
	}
}

func wantRoutes(t *testing.T, got []relay.Route, want ...relay.Route) {
	t.Helper()
	for i := range got {
		got[i].Retry = nil
		if i < len(want) && want[i].Headers == "" {
			want[i].Headers = relay.HeadersPostrider
		}
		if i < len(want) {
			want[i].Key, want[i].OnDead = relay.DefaultKey, relay.OnDeadContinue
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("routes\n%+v, want\n%+v", got, want)
	}
}

func TestPlansOfAnEventForSeveralSinks(t *testing.T) {
	c := parse(t, severalSinks)
	plans, err := PlansOf(c, relay.Event{AggregateType: "order", EventType: "Paid", AggregateID: "17", Topic: "own"})
	if err != nil || len(plans) != 2 {
		t.Fatalf("plans %+v, %v", plans, err)
	}
	hooks, main := plans[0], plans[1]
	if hooks.Route != 0 || hooks.Sink.Name != "hooks" || hooks.Message.Topic != "own" || main.Sink.Name != "main" || main.Message.Headers[0].Name != "ce_specversion" {
		t.Errorf("plans %+v", plans)
	}
	plans, err = PlansOf(c, relay.Event{AggregateType: "user", EventType: "Left"})
	if err != nil || len(plans) != 1 || plans[0].Route != 1 || plans[0].Sink.Name != "other" {
		t.Errorf("plans of an event for one sink: %+v, %v", plans, err)
	}
}
