package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// BenchmarkReadBehindAShutSink reads events that lie behind others, whose sink takes nothing: their kind is skipped. The
// metric is the shortest read.
func BenchmarkReadBehindAShutSink(b *testing.B) {
	for _, name := range []string{"POSTGRES", "POSTGRES18", "MYSQL", "MARIADB"} {
		for _, waiting := range []int{0, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", strings.ToLower(name), waiting), func(b *testing.B) {
				open := newMySQL
				if strings.HasPrefix(name, "POSTGRES") {
					open = newPostgres
				}
				benchmarkRead(b, open(b, "POSTRIDER_TEST_"+name), waiting)
			})
		}
	}
}

func benchmarkRead(b *testing.B, d database, waiting int) {
	const shards, limit = 64, 800
	s := d.store(b, sqlstore.Config{Shards: shards})
	ownAll(b, s, relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour})
	for left := waiting; left > 0; left -= 100_000 {
		d.addMany(b, min(left, 100_000))
	}
	d.many = strings.Replace(d.many, "'order'", "'other'", 1)
	d.addMany(b, 4*limit)
	req := relay.ReadRequest{Skip: []relay.Kind{{AggregateType: "order", EventType: "OrderPlaced"}}, PerShard: limit / shards * 2, Limit: limit, MaxBytes: 1 << 30}
	for shard := range shards {
		req.Shards = append(req.Shards, shard)
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		events, err := s.Read(b.Context(), req)
		if err != nil || len(events) != limit || events[0].AggregateType != "other" {
			b.Fatalf("read %d events, %v", len(events), err)
		}
		took = append(took, time.Since(start))
	}
	b.ReportMetric(float64(slices.Min(took).Microseconds())/1000, "ms/read")
}
