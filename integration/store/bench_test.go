package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// BenchmarkReadAndSettle measures the store's part of publishing: reading a batch while others are in flight, and
// settling it.
func BenchmarkReadAndSettle(b *testing.B) {
	for name, open := range map[string]func(testing.TB) database{
		"postgres":   func(tb testing.TB) database { return newPostgres(tb, "POSTRIDER_TEST_POSTGRES") },
		"postgres18": func(tb testing.TB) database { return newPostgres(tb, "POSTRIDER_TEST_POSTGRES18") },
		"sqlite":     newSQLite,
	} {
		for _, batch := range []int{500, 2000} {
			b.Run(fmt.Sprintf("%s/%d", name, batch), func(b *testing.B) { benchmark(b, open(b), batch) })
		}
	}
}

func benchmark(b *testing.B, d database, batch int) {
	const shards = 64
	s := d.store(b, sqlstore.Config{Shards: shards})
	m := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
	leases := ownAll(b, s, m)
	req := relay.ReadRequest{PerShard: batch, Limit: batch, MaxBytes: 1 << 30}
	d.addMany(b, (b.N+4)*batch)
	var waiting [][]relay.Event // is in flight
	read, settle := time.Duration(0), time.Duration(0)
	step := func() {
		start := time.Now()
		req.InFlight, req.Shards = nil, nil
		for _, events := range waiting {
			for _, e := range events {
				req.InFlight = append(req.InFlight, e.ID)
			}
		}
		for shard := range shards {
			req.Shards = append(req.Shards, (shard+len(waiting))%shards)
		}
		events, err := s.Read(b.Context(), req)
		if err != nil || len(events) != batch {
			b.Fatalf("read %d events, %v", len(events), err)
		}
		read += time.Since(start)
		waiting = append(waiting, events)
	}
	for range 4 {
		step()
	}
	read = 0
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		var outcomes []relay.Settlement
		for _, e := range waiting[0] {
			outcomes = append(outcomes, relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePublished, PublishedTo: "kafka:orders/3@1042"})
		}
		waiting = waiting[1:]
		if settled, err := s.Settle(b.Context(), m, outcomes); err != nil || len(settled) != batch {
			b.Fatalf("settled %d, %v", len(settled), err)
		}
		settle += time.Since(start)
		step()
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(read.Milliseconds())/float64(b.N), "ms/read")
	b.ReportMetric(float64(settle.Milliseconds())/float64(b.N), "ms/settle")
}

// BenchmarkReadBehindHeldKeys measures a read of 500 events while 100,000 of a held key wait before them, all in one shard, also
// when thousands of other keys are held; and without any hold.
func BenchmarkReadBehindHeldKeys(b *testing.B) {
	for name, open := range map[string]func(testing.TB) database{
		"postgres":   func(tb testing.TB) database { return newPostgres(tb, "POSTRIDER_TEST_POSTGRES") },
		"postgres18": func(tb testing.TB) database { return newPostgres(tb, "POSTRIDER_TEST_POSTGRES18") },
		"mysql":      func(tb testing.TB) database { return newMySQL(tb, "POSTRIDER_TEST_MYSQL") },
		"mariadb":    func(tb testing.TB) database { return newMySQL(tb, "POSTRIDER_TEST_MARIADB") },
		"sqlite":     newSQLite,
	} {
		b.Run(name, func(b *testing.B) {
			d := open(b)
			s := d.store(b, sqlstore.Config{Shards: 1})
			d.addMany(b, 1000)
			execute(b, d.db, "INSERT INTO "+d.table+` (aggregate_type, aggregate_id, event_type, payload)
				SELECT e.aggregate_type, 'held', e.event_type, e.payload FROM `+d.table+" e, (SELECT id FROM "+d.table+" LIMIT 100) hundred")
			execute(b, d.db, "DELETE FROM "+d.table+" WHERE aggregate_id <> 'held'")
			d.addMany(b, 1000)
			req := relay.ReadRequest{Shards: []int{0}, PerShard: 500, Limit: 500, MaxBytes: 1 << 30}
			read := func(b *testing.B) {
				for b.Loop() {
					readSome(b, s, req)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/read")
			}
			b.Run("none held", read)
			execute(b, d.db, "INSERT INTO "+d.side("holds")+" (event, event_key) VALUES (0, 'held')")
			b.Run("one held", read)
			d.addHolds(b, 5000)
			b.Run("5001 held", read)
		})
	}
}
