package daemon

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// stuck is a sink that answers only when it must.
type stuck struct{ asked chan struct{} }

func (s stuck) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	s.asked <- struct{}{}
	<-ctx.Done()
	outcomes := make([]relay.Outcome, len(batch))
	for i := range outcomes {
		outcomes[i] = relay.Unavailable(ctx.Err())
	}
	return outcomes
}

func (stuck) Close() error { return nil }

func openDatabase(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(filepath.Join(t.TempDir(), "orders.db")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// newRelay makes a relay of an outbox with one event.
func newRelay(t *testing.T, db *sql.DB, table string, sink relay.Sink, grace time.Duration) *relay.Relay {
	t.Helper()
	store, err := sqlstore.Open(db, sqlstore.SQLite, sqlstore.Config{Table: table, Shards: 2})
	if err == nil {
		err = store.Init(t.Context())
	}
	if err == nil {
		_, err = db.Exec("INSERT INTO " + table + " (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', '1', 'Paid', '{}')")
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(relay.Config{
		Store: store, Name: "orders", Shards: 2, Grace: grace,
		Sinks: []relay.NamedSink{{Name: "out", Sink: sink}}, Routes: []relay.Route{{Sink: "out"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The relays use up their grace periods at the same time, not one after the other.
func TestAllRelaysStopWithinOneGracePeriod(t *testing.T) {
	const grace = 3 * time.Second
	db := openDatabase(t)
	sink := stuck{make(chan struct{}, 2)}
	r := &relays{main: newRelay(t, db, "orders", sink, grace)}
	r.destinations = append(r.destinations, destination{
		wiring.Destination{Destination: config.Destination{Sink: "out"}}, newRelay(t, db, "orders_to_out", sink, grace-lead(grace)),
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan time.Time)
	go func() {
		_ = r.run(ctx, lead(grace)) // what was being sent is not settled
		ended <- time.Now()
	}()
	<-sink.asked
	<-sink.asked
	begin := time.Now()
	stop()
	if took := (<-ended).Sub(begin); took < grace-lead(grace) || took > grace*3/2 {
		t.Errorf("the stop took %v, with a grace period of %v", took, grace)
	}
}

// A relay that cannot go on ends the others, and says whose it was.
func TestARelayThatEndsEndsAll(t *testing.T) {
	sink := stuck{make(chan struct{}, 2)}
	for name, broken := range map[string]string{"main": "orders", "destination": "orders_to_out"} {
		t.Run(name, func(t *testing.T) {
			db := openDatabase(t)
			r := &relays{main: newRelay(t, db, "orders", sink, 50*time.Millisecond)}
			r.destinations = append(r.destinations, destination{
				wiring.Destination{Destination: config.Destination{Sink: "out"}}, newRelay(t, db, "orders_to_out", sink, 50*time.Millisecond),
			})
			if _, err := db.Exec("DROP TABLE " + broken + "_shards"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := r.run(ctx, time.Millisecond)
			if ctx.Err() != nil {
				t.Error("the other relay went on")
			}
			if err == nil || strings.Contains(err.Error(), "destination out: ") != (name == "destination") {
				t.Errorf("error %v", err)
			}
		})
	}
}
