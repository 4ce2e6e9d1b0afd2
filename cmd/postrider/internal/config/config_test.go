package config

import (
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden problem lists anew")

// Each file in testdata/problems has its list of problems beside it.
func TestProblems(t *testing.T) {
	files, err := filepath.Glob("testdata/problems/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	variables := map[string]string{"EMPTY": "", "NUMBER": "4711", "SECRET": "tr0ub4dor"}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse("postrider.yaml", data, lookup)
			var mistakes *Error
			if !errors.As(err, &mistakes) {
				t.Fatalf("got %v, want an Error", err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got := mistakes.Error() + "\n"; got != string(want) {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
			for _, secret := range []string{"tr0ub4dor", "4711", "hunter2"} {
				if strings.Contains(mistakes.Error(), secret) {
					t.Errorf("a problem shows %s:\n%v", secret, mistakes)
				}
			}
		})
	}
}

func parseFile(t *testing.T, file string, variables map[string]string) *Config {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(file, data, func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return c
}

func TestEveryValueIsRead(t *testing.T) {
	got := parseFile(t, "testdata/valid/full.yaml", map[string]string{
		"DATABASE_URL": "postgres://app:p$$w@db:5432/app",
		"BROKERS":      "k1:9092, k2:9092",
		"BATCH":        "250",
		"TOKEN":        "t",
	})
	schedule := Retry{Schedule: []time.Duration{100 * time.Millisecond, time.Minute}, Jitter: 0.055}
	want := &Config{
		Outbox: Outbox{DSN: "postgres://app:p$$w@db:5432/app", Database: Postgres, Table: "app.events", Payload: PayloadBinary},
		Relay: Relay{
			Name: "orders-1", Claim: ClaimShard, VersionGap: 90 * time.Minute, Shards: 1024, Batch: 250,
			MaxInFlightEvents: 1000, MaxInFlightBytes: 64_000_000,
			Lease: 20 * time.Second, PublishTimeout: 1500 * time.Millisecond,
			Poll:        Poll{Min: 10 * time.Millisecond, Max: time.Second},
			OnPublished: KeepPublished, Retention: 0, Cleanup: Cleanup{Interval: 30 * time.Second, Chunk: 50},
			Grace: time.Millisecond, Retry: schedule, OnDead: HoldKey,
		},
		Sinks: []Sink{
			{Name: "main", Type: SinkKafka, Kafka: &Kafka{
				Brokers:     []string{"k1:9092", "k2:9092"},
				TLS:         &TLS{CA: "ca.pem", Cert: "c.pem", Key: "k.pem", ServerName: "kafka", InsecureSkipVerify: true},
				SASL:        &SASL{Mechanism: SASLScramSHA256, Username: "app", Password: "12345"},
				Compression: CompressionZstd, MaxMessageBytes: 1 << 21,
			}},
			{Name: "jet", Type: SinkNATS, NATS: &NATS{
				Servers: []string{"nats://a:4222", "tls://b"}, User: "app", Password: "$pa$s",
				TLS: &TLS{CA: "ca.pem"}, Stream: "ORDERS",
			}},
			{Name: "jwt", Type: SinkNATS, NATS: &NATS{Servers: []string{"wss://a"}, CredentialsFile: "a.creds", TLS: &TLS{}}},
			{Name: "tok", Type: SinkNATS, NATS: &NATS{Servers: []string{"ws://a"}, Token: "t"}},
			{Name: "local", Type: SinkNATS, NATS: &NATS{Stream: "S", Embedded: &EmbeddedNATS{
				Dir: "data", Listen: "[::1]:4222", Subjects: []string{"a.>", "b"},
			}}},
			{Name: "out", Type: SinkStdout},
		},
		Routes: []Route{
			{AggregateType: "order", EventType: "order.*", Sink: "main", Topic: "orders.{event_type}", Headers: HeadersDebezium,
				Key: "{aggregate_type}/{key}", SetHeaders: map[string]string{"source": "shop/{aggregate_type}", "team": "a"},
				Retry: Retry{Backoff: &Backoff{Initial: 2 * time.Second, Max: time.Hour, Attempts: 3}, Jitter: 0}, OnDead: HoldKey},
			{AggregateType: "order", Sink: "jet", Topic: "x.{aggregate_type}.{aggregate_id}", Key: "{key}", Headers: HeadersPostrider,
				Retry: Retry{Schedule: []time.Duration{time.Second}, Jitter: 0.055}, OnDead: ContinueKey},
			{EventType: "*", Sink: "out", Topic: "plain", Key: "{key}", Headers: HeadersPostrider, Retry: schedule, OnDead: HoldKey},
		},
		Inbox: Inbox{DSN: "mysql://app@db/consumers", Database: MySQL, Table: "app.receipts", Parked: "app.parked"},
		Admin: Admin{Listen: "0.0.0.0:8970", Token: "t"},
		Log:   Log{Level: slog.LevelDebug, Format: LogJSON},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got:\n%+v\nwant:\n%+v", got, want)
	}
}

func TestEachDatabaseAndItsScheme(t *testing.T) {
	for dsn, want := range map[string]Database{
		"postgres://h/db": Postgres, "postgresql://h/db": Postgres,
		"mysql://h/db": MySQL, "mariadb://h/db": MySQL,
		"mongodb://h/db": MongoDB, "mongodb+srv://h/db": MongoDB,
		"sqlite:a.db": SQLite, "sqlite:///var/a.db": SQLite, "sqlite::memory:": SQLite,
		"": "", "postgres://": "", "postgres": "", "sqlite:": "", "sqlite://": "",
		"host=h user=u": "", "u:p@tcp(h)/db": "", "oracle://h/db": "",
	} {
		if got := databaseOf(dsn); got != want {
			t.Errorf("%q is %q, want %q", dsn, got, want)
		}
	}
}

func TestMariaDBIsReachedAsMySQL(t *testing.T) {
	c, err := Parse("f", []byte(`{outbox: {dsn: "mariadb://u:p@h/db"}, sinks: {main: {type: stdout}}, routes: [{sink: main}]}`), os.LookupEnv)
	if err != nil || c.Outbox.Database != MySQL || c.Outbox.DSN.Reveal() != "mysql://u:p@h/db" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestTheShortestConfiguration(t *testing.T) {
	c := parseFile(t, "testdata/valid/short.yaml", nil)
	if c.Admin.Listen != "" {
		t.Errorf("admin.listen is %q, want none", c.Admin.Listen)
	}
	if len(c.Routes) != 1 || c.Routes[0].Topic != "{aggregate_type}" || !reflect.DeepEqual(c.Routes[0].Retry, c.Relay.Retry) {
		t.Errorf("routes are %+v", c.Routes)
	}
}

func TestDefaultsThatFollowOthers(t *testing.T) {
	c := parseFile(t, "testdata/valid/following.yaml", nil)
	if c.Relay.MaxInFlightEvents != 160_000 {
		t.Errorf("max_in_flight_events is %d, want 8 batches", c.Relay.MaxInFlightEvents)
	}
	if c.Relay.PublishTimeout != 1500*time.Millisecond {
		t.Errorf("publish_timeout is %v, want half the lease", c.Relay.PublishTimeout)
	}
}

func TestLoadSaysWhichFileIsMissing(t *testing.T) {
	_, err := Load("testdata/no-such.yaml")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "testdata/no-such.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestLoadReadsTheEnvironment(t *testing.T) {
	t.Setenv("DATABASE_URL", "sqlite:from-environment.db")
	c, err := Load("testdata/valid/design.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Outbox.DSN.Reveal(); got != "sqlite:from-environment.db" {
		t.Errorf("dsn is %q", got)
	}
}

// Whatever a file says, no problem shows what a variable holds.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "testdata/reference.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const held = "qzx0xzq"
		if strings.Contains(strings.ToLower(string(data)), held) {
			return
		}
		c, err := Parse("f", data, func(string) (string, bool) { return held, true })
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
		if err != nil && (err.Error() == "" || strings.Contains(err.Error(), held)) {
			t.Errorf("error %q", err)
		}
	})
}
