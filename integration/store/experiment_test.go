package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// The experiment: four workers share 100 rows, in batches of 50, for 50 rounds. Nobody may get a row that another one got.
const (
	workers     = 4
	rowsInRound = 100
	batchOfRows = 50
	rounds      = 50
)

// worker takes a batch of rows and returns their ids; none means that nothing is left for it.
type worker func(ctx context.Context) ([]string, error)

func TestFourWorkersWithRowClaims(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		for range rounds {
			d.addMany(t, rowsInRound)
			taken := race(t, func(i int) worker { return claimWorker(t, s, i) })
			wantEachOnce(t, taken)
		}
	})
}

func claimWorker(t *testing.T, s *sqlstore.Store, i int) worker {
	r := rowClaimer(t, s, fmt.Sprint("worker-", i), time.Hour)
	m := relay.Member{ID: fmt.Sprint("worker-", i)}
	return func(ctx context.Context) ([]string, error) {
		events, err := r.Read(ctx, everything(batchOfRows))
		if err != nil {
			return nil, err
		}
		return publishAll(ctx, r, m, events, nil)
	}
}

func TestFourWorkersWithShardLeases(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		leases := make([][]relay.Lease, workers)
		members := make([]relay.Member, workers)
		for i := range workers {
			members[i] = relay.Member{Name: "main", ID: fmt.Sprint("worker-", i), Shards: shards, LeaseTTL: time.Hour}
			leases[i] = leaseEveryFourth(t, s, members[i], i)
		}
		for range rounds {
			d.addMany(t, rowsInRound)
			taken := race(t, func(i int) worker { return leaseWorker(s, members[i], leases[i]) })
			wantEachOnce(t, taken)
		}
	})
}

// leaseEveryFourth acquires what a worker's share of the shards is, while all the others ask for everything, too.
func leaseEveryFourth(t *testing.T, s *sqlstore.Store, m relay.Member, first int) (mine []relay.Lease) {
	t.Helper()
	table, err := s.Renew(t.Context(), relay.Heartbeat{Member: m}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen []relay.Lease
	for _, l := range table.Shards {
		if l.Shard%workers == first {
			seen = append(seen, l.Lease)
		}
	}
	mine, err = s.Acquire(t.Context(), m, seen)
	if err != nil || len(mine) == 0 {
		t.Fatalf("acquired %v: %v", mine, err)
	}
	return mine
}

func leaseWorker(s *sqlstore.Store, m relay.Member, leases []relay.Lease) worker {
	req := relay.ReadRequest{PerShard: batchOfRows, Limit: batchOfRows, MaxBytes: 1 << 30}
	for _, l := range leases {
		req.Shards = append(req.Shards, l.Shard)
	}
	return func(ctx context.Context) ([]string, error) {
		events, err := s.Read(ctx, req)
		if err != nil {
			return nil, err
		}
		return publishAll(ctx, s, m, events, leases)
	}
}

// publishAll settles events as published and returns the ids of those that were written.
func publishAll(ctx context.Context, s relay.Store, m relay.Member, events []relay.Event, leases []relay.Lease) ([]string, error) {
	settlements := make([]relay.Settlement, len(events))
	for i, e := range events {
		settlements[i] = relay.Settlement{ID: e.ID, State: postrider.StatePublished}
		for _, l := range leases {
			if l.Shard == e.Shard {
				settlements[i].Lease = l
			}
		}
	}
	written, err := s.Settle(ctx, m, settlements)
	if err == nil && len(written) != len(events) {
		err = fmt.Errorf("%d of %d events were written", len(written), len(events))
	}
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	return ids, err
}

// TestFourWorkersThatSelectAndUpdateTakeRowsTwice shows that the experiment can fail: a select, and an update by id of what
// it found, is what many relays do.
func TestFourWorkersThatSelectAndUpdateTakeRowsTwice(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		for range rounds {
			d.addMany(t, rowsInRound)
			seen := newMeeting(workers)
			if twice := countTwice(race(t, func(int) worker { return naiveWorker(d, seen) })); twice > 0 {
				return
			}
		}
		t.Error("no row was taken twice: the experiment shows nothing")
	})
}

// naiveWorker lets all workers look before one of them updates, as they do when they are woken together.
func naiveWorker(d database, seen *meeting) worker {
	return func(ctx context.Context) ([]string, error) {
		ids, err := selectIDs(ctx, d.db, fmt.Sprintf("SELECT id FROM %s WHERE status = 'PENDING' ORDER BY id LIMIT %d", d.table, batchOfRows))
		seen.attend()
		for _, id := range ids {
			if err != nil {
				return nil, err
			}
			_, err = d.db.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET status = 'PROCESSING' WHERE id = %s", d.table, id))
		}
		return ids, err
	}
}

func selectIDs(ctx context.Context, db *sql.DB, query string) (ids []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// meeting keeps those who attend it first waiting until all have come; later ones pass.
type meeting struct {
	mu      sync.Mutex
	missing int
	all     chan struct{}
}

func newMeeting(n int) *meeting { return &meeting{missing: n, all: make(chan struct{})} }

func (m *meeting) attend() {
	m.mu.Lock()
	if m.missing--; m.missing == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	<-m.all
}

// race lets the workers take rows at the same time until none is left, and returns how often each row was taken.
func race(t *testing.T, newWorker func(i int) worker) map[string]int {
	t.Helper()
	var (
		start sync.WaitGroup
		done  sync.WaitGroup
		mu    sync.Mutex
		times = make(map[string]int)
	)
	start.Add(1)
	for i := range workers {
		take := newWorker(i)
		done.Go(func() {
			start.Wait()
			for {
				ids, err := take(t.Context())
				if err != nil {
					t.Error(err)
				}
				if err != nil || len(ids) == 0 {
					return
				}
				mu.Lock()
				for _, id := range ids {
					times[id]++
				}
				mu.Unlock()
			}
		})
	}
	start.Done()
	done.Wait()
	return times
}

func countTwice(times map[string]int) (twice int) {
	for _, n := range times {
		if n > 1 {
			twice++
		}
	}
	return twice
}

func wantEachOnce(t *testing.T, times map[string]int) {
	t.Helper()
	if twice := countTwice(times); twice > 0 || len(times) != rowsInRound {
		t.Fatalf("%d rows were taken, %d of them twice; want each of %d once", len(times), twice, rowsInRound)
	}
}
