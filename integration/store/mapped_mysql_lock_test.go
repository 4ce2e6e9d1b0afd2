package store

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
)

// inserts are the DDL of presets and what their producers execute.
var inserts = map[string]struct{ ddl, insert string }{
	"event-outbox":   {"event-outbox.sql", "INSERT INTO event_outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('order', concat('key-', ?), 'E', '{}')"},
	"outbox-events":  {"outbox-events.sql", "INSERT INTO outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, next_attempt_at, created_at) VALUES (uuid(), 'order', concat('key-', ?), 'E', '{}', utc_timestamp(), utc_timestamp())"},
	"debezium":       {"debezium.mysql.sql", "INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES (uuid(), 'order', concat('key-', ?), 'E', '{}')"},
	"eventuate-tram": {"eventuate-tram.mysql.sql", "INSERT INTO message (id, destination, headers, payload, creation_time) VALUES (uuid(), 'orders', '{}', concat('key-', ?), unix_timestamp())"},
}

// producer is in the server's default isolation and waits for a lock no longer than a second.
func (m mapped) producer(t *testing.T) *patient {
	t.Helper()
	conn, err := m.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p := &patient{d: m.database, conn: conn, name: "their"}
	p.exec(t, "SET SESSION innodb_lock_wait_timeout = 1")
	return p
}

func (p *patient) addThree(t *testing.T, insert string) {
	t.Helper()
	p.exec(t, "START TRANSACTION")
	for n := range 3 {
		p.exec(t, insert, n)
	}
	p.exec(t, "COMMIT")
}

// TestProducersOfAMappedTableInsertWhileARelayHoldsItsLocks is TestMySQLProducersInsertWhileARelayHoldsItsLocks for tables of
// theirs, with what marks rows and what deletes them, and their own indexes.
func TestProducersOfAMappedTableInsertWhileARelayHoldsItsLocks(t *testing.T) {
	for name, test := range inserts {
		t.Run(name, func(t *testing.T) {
			eachPreset(t, name, test.ddl, func(t *testing.T, m mapped) {
				m.init(t)
				for n := range 100 {
					execute(t, m.db, test.insert, n)
				}
				produce := m.producer(t)
				commits := 0
				m.db = openHeld(t, m.database, func() {
					commits++
					produce.addThree(t, test.insert)
				})
				s := m.openMapped(t)
				a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
				leases := ownAll(t, s, a)
				before := commits
				relayOnce(t, s, a, leases)
				if commits-before < 8 {
					t.Errorf("%d transactions of the relay were met, want every kind", commits-before)
				}
			})
		})
	}
}

// TestProducersOfAMappedTableAndRelayNeverLockEachOtherOut has producers insert while a relay reads, settles and cleans.
func TestProducersOfAMappedTableAndRelayNeverLockEachOtherOut(t *testing.T) {
	for name, test := range inserts {
		t.Run(name, func(t *testing.T) {
			eachPreset(t, name, test.ddl, func(t *testing.T, m mapped) {
				h := m.hold(t)
				ctx, cancel := context.WithCancel(t.Context())
				var producers, relays sync.WaitGroup
				for range 3 {
					produce := m.producer(t)
					producers.Go(func() {
						for range 50 {
							produce.addThree(t, test.insert)
						}
					})
				}
				relays.Go(func() { work(ctx, t, h.Store, h.member, h.leases) })
				relays.Go(func() {
					for ctx.Err() == nil {
						if _, err := h.Clean(t.Context(), relay.CleanRequest{Limit: 1000}); err != nil {
							t.Error(err)
						}
					}
				})
				producers.Wait()
				cancel()
				relays.Wait()
			})
		})
	}
}
