package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestMySQLCrashesLoseNothing kills the server again and again while relays claim and settle. Each outcome that was
// acknowledged is there after the restart, and in the end every event is PUBLISHED: neither a claim nor a lease of the
// relays that ended with the server stays in the way.
func TestMySQLCrashesLoseNothing(t *testing.T) {
	for name := range mysqlServers {
		t.Run(name, func(t *testing.T) {
			server := servers.Launch(t, name)
			for claim, work := range map[relay.Claim]relayLife{relay.ClaimRow: liveByClaims, relay.ClaimShard: liveByLeases} {
				t.Run(string(claim), func(t *testing.T) { testCrashes(t, server, work) })
			}
		})
	}
}

func testCrashes(t *testing.T, server *servers.Server, live relayLife) {
	const crashes, untilCrash, events = 3, 100, 1000
	d := newMySQLAt(t, fmt.Sprintf("mysql://postrider:postrider@127.0.0.1:%d/postrider", server.Port()))
	s := d.store(t, sqlstore.Config{})
	d.addMany(t, events)
	acknowledged := &outcomes{}
	ctx, cancel := context.WithCancel(t.Context())
	var relays sync.WaitGroup
	for i := range workers {
		relays.Go(func() { liveAgainAndAgain(ctx, t, s, live, fmt.Sprint("relay-", i), acknowledged) })
	}
	defer relays.Wait()
	defer cancel()
	for range crashes {
		before := acknowledged.n.Load()
		await.True(t, time.Minute, "the relays settle", func() bool { return acknowledged.n.Load() >= before+untilCrash })
		server.Stop(t, syscall.SIGKILL)
		want := acknowledged.list()
		server.Start(t)
		published := d.published(t)
		for _, id := range want {
			if !published[id] {
				t.Fatalf("event %s was acknowledged as published, and is not after the crash", id)
			}
		}
	}
	await.True(t, time.Minute, "every event is published", func() bool { return len(d.published(t)) == events })
}

func (d database) published(t *testing.T) map[string]bool {
	t.Helper()
	ids, err := selectIDs(t.Context(), d.db, "SELECT id FROM "+d.table+" WHERE status = 'PUBLISHED'")
	if err != nil {
		t.Fatal(err)
	}
	published := make(map[string]bool, len(ids))
	for _, id := range ids {
		published[id] = true
	}
	return published
}

// outcomes are the ids that stores have told to be written.
type outcomes struct {
	n   atomic.Int64
	mu  sync.Mutex
	ids []string
}

func (o *outcomes) add(ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids = append(o.ids, ids...)
	o.n.Store(int64(len(o.ids)))
}

func (o *outcomes) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.ids...)
}

// relayLife works until the first error, and adds what was settled.
type relayLife func(ctx context.Context, s *sqlstore.Store, m relay.Member, settled *outcomes) error

// liveAgainAndAgain gives each life an id of its own, so that nothing of the one before is given back.
func liveAgainAndAgain(ctx context.Context, t *testing.T, s *sqlstore.Store, live relayLife, name string, settled *outcomes) {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for life := 0; ctx.Err() == nil; life++ {
		m := relay.Member{Name: "main", ID: fmt.Sprint(name, "-", life), Shards: shards, LeaseTTL: time.Second}
		if err := live(ctx, s, m, settled); ctx.Err() == nil && !errors.Is(err, sqlstore.ErrUnreachable) {
			t.Logf("%s ended: %v", m.ID, err)
		}
		<-pause.C
	}
}

func liveByClaims(ctx context.Context, s *sqlstore.Store, m relay.Member, settled *outcomes) error {
	m.Claim = relay.ClaimRow
	r := s.RowClaims()
	for {
		if _, err := r.Renew(ctx, relay.Heartbeat{Member: m}, nil); err != nil {
			return err
		}
		if err := moveBatch(ctx, r, m, everything(10), nil, settled); err != nil {
			return err
		}
	}
}

func liveByLeases(ctx context.Context, s *sqlstore.Store, m relay.Member, settled *outcomes) error {
	var leases []relay.Lease
	for {
		table, err := s.Renew(ctx, relay.Heartbeat{Member: m}, leases)
		if err != nil {
			return err
		}
		var free []relay.Lease
		leases = nil
		for _, l := range table.Shards {
			switch {
			case l.Owner == m.ID:
				leases = append(leases, l.Lease)
			case l.Owner == "" || l.Expired:
				free = append(free, l.Lease)
			}
		}
		taken, err := s.Acquire(ctx, m, free[:min(1, len(free))])
		if err != nil {
			return err
		}
		leases = append(leases, taken...)
		req := relay.ReadRequest{PerShard: 10, Limit: 10, MaxBytes: 1 << 30}
		for _, l := range leases {
			req.Shards = append(req.Shards, l.Shard)
		}
		if len(leases) == 0 {
			continue
		}
		if err := moveBatch(ctx, s, m, req, leases, settled); err != nil {
			return err
		}
	}
}

func moveBatch(ctx context.Context, s relay.Store, m relay.Member, req relay.ReadRequest, leases []relay.Lease, settled *outcomes) error {
	events, err := s.Read(ctx, req)
	if err != nil || len(events) == 0 {
		return err
	}
	ids, err := publishAll(ctx, s, m, events, leases)
	if err == nil {
		settled.add(ids)
	}
	return err
}
