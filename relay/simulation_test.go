package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// TestSimulation lets several relays work on one outbox while the sink refuses, delays and loses connections, the
// database goes away, and relays are started, stopped and killed, all by chance. Whatever happens, every event ends
// PUBLISHED or DEAD, and first deliveries of a key are in order when shards are leased. A failing seed can be repeated
// alone.
func TestSimulation(t *testing.T) { simulate(t, relay.ClaimShard, relay.OnDeadContinue, 25) }

func TestSimulationOfRowClaims(t *testing.T) { simulate(t, relay.ClaimRow, relay.OnDeadContinue, 15) }

// TestSimulationOfHeldKeys has an operator who redrives some of what is DEAD, and at last all of it: no event is passed over by
// a later one of its key.
func TestSimulationOfHeldKeys(t *testing.T) { simulate(t, relay.ClaimShard, relay.OnDeadHold, 15) }

func simulate(t *testing.T, claim relay.Claim, onDead relay.OnDead, seeds uint64) {
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newWorld(claim, onDead, seed).run(t) })
		})
	}
}

const (
	simKeys   = 12
	simEvents = 400
)

// world is one simulated installation.
type world struct {
	claim  relay.Claim
	onDead relay.OnDead
	chance *dice
	memory *memory
	broker *broker
	keys   [simKeys][]string // ids per key in the order of their commits
}

// dice is a source of chance that goroutines may share.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n)
}

func (d *dice) upTo(most time.Duration) time.Duration { return time.Duration(d.below(int(most) + 1)) }

func newWorld(claim relay.Claim, onDead relay.OnDead, seed uint64) *world {
	chance := &dice{rnd: rand.New(rand.NewPCG(seed, 1))}
	m := newMemory()
	m.late = func() time.Duration { return chance.upTo(20 * time.Millisecond) }
	return &world{claim: claim, onDead: onDead, chance: chance, memory: m, broker: &broker{chance: chance}}
}

func (w *world) run(t *testing.T) {
	var producers, operators sync.WaitGroup
	for k := range simKeys {
		producers.Go(func() { w.produce(k) })
	}
	ctx, calm := context.WithCancel(context.Background())
	operators.Go(func() { w.runRelays(ctx, t) })
	operators.Go(func() { w.shakeDatabase(ctx) })
	if w.onDead == relay.OnDeadHold {
		operators.Go(func() { w.redrive(ctx) })
	}
	producers.Wait()
	time.Sleep(w.chance.upTo(5 * time.Minute))
	calm()
	operators.Wait()

	w.broker.peace.Store(true)
	if w.onDead == relay.OnDeadHold {
		w.memory.redrive(nil)
	}
	_, stop := start(t, w.config(&link{Store: w.store(), broker: w.broker}))
	await(t, "nothing is pending", func() bool {
		return w.memory.count(postrider.StatePending)+w.memory.count(postrider.StateProcessing) == 0
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
	w.check(t)
}

// store is what one relay has of the database.
func (w *world) store() relay.Store {
	if w.claim == relay.ClaimRow {
		return newClaiming(w.memory)
	}
	return w.memory
}

func (w *world) config(l *link) relay.Config {
	cfg := setup(w.memory, l)
	cfg.Store, cfg.Claim, cfg.OnDead = l, w.claim, w.onDead
	return cfg
}

// produce commits events of one key, one transaction after the other, some of them slowly.
func (w *world) produce(k int) {
	for range simEvents / simKeys {
		time.Sleep(w.chance.upTo(time.Second))
		id, commit := w.memory.begin(key(k), "placed")
		time.Sleep(w.chance.upTo(200 * time.Millisecond))
		commit()
		w.keys[k] = append(w.keys[k], id)
	}
}

// runRelays keeps up to three relays at work; each one ends in order or is killed.
func (w *world) runRelays(ctx context.Context, t *testing.T) {
	var slots sync.WaitGroup
	for range 3 {
		slots.Go(func() {
			for ctx.Err() == nil {
				cfg := w.config(&link{Store: w.store(), broker: w.broker})
				l := cfg.Store.(*link)
				cfg.Batch = 1 + w.chance.below(50)
				cfg.Lease, cfg.PublishTimeout = 3*time.Second, time.Second
				_, stop := start(t, cfg)
				time.Sleep(w.chance.upTo(time.Minute))
				if w.chance.below(2) == 0 {
					l.dead.Store(true)
				}
				_ = stop() // a stop during an outage may have to give up
				time.Sleep(w.chance.upTo(10 * time.Second))
			}
		})
	}
	slots.Wait()
}

func (w *world) shakeDatabase(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(w.chance.upTo(30 * time.Second))
		w.memory.fail(errors.New("database away"))
		time.Sleep(w.chance.upTo(6 * time.Second))
		w.memory.fail(nil)
	}
	w.memory.fail(nil)
}

func (w *world) redrive(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(w.chance.upTo(time.Minute))
		w.memory.redrive(func() bool { return w.chance.below(2) == 0 })
	}
}

func (w *world) check(t *testing.T) {
	first := w.broker.firstDeliveries()
	for k, committed := range w.keys {
		var want []string
		for _, id := range committed {
			switch r := w.memory.find(id); r.state {
			case postrider.StatePublished:
				want = append(want, id)
			case postrider.StateDead:
				if w.onDead == relay.OnDeadHold {
					t.Errorf("event %s of %s is DEAD although it was redriven", id, key(k))
				}
				if slices.Contains(first[key(k)], id) {
					want = append(want, id) // reached the broker although its answer got lost
				}
			default:
				t.Errorf("event %s of %s ended %s", id, key(k), r.state)
			}
		}
		if w.claim == relay.ClaimRow {
			slices.Sort(want)
			slices.Sort(first[key(k)])
		}
		if !slices.Equal(first[key(k)], want) {
			t.Errorf("%s: first deliveries %v, want %v", key(k), first[key(k)], want)
		}
	}
}

// broker is a destination at which anything can go wrong.
type broker struct {
	chance *dice
	peace  atomic.Bool // nothing goes wrong any more
	mu     sync.Mutex
	log    []relay.Message
}

func (b *broker) firstDeliveries() map[string][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, seen := make(map[string][]string), make(map[string]bool)
	for _, m := range b.log {
		if id := string(m.Payload); !seen[id] {
			seen[id] = true
			first[m.Key] = append(first[m.Key], id)
		}
	}
	return first
}

func (b *broker) publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	outcomes := make([]relay.Outcome, len(batch))
	broken := make(map[string]bool)
	var down error
	for i, m := range batch {
		switch {
		case broken[m.Key]:
			outcomes[i] = relay.Skipped()
			continue
		case down != nil:
			outcomes[i] = relay.Unavailable(down)
		default:
			outcomes[i] = b.one(ctx, m)
		}
		if outcomes[i].Class == relay.ClassUnavailable {
			down = outcomes[i].Err
		}
		broken[m.Key] = outcomes[i].Class != relay.ClassPublished
	}
	return outcomes
}

func (b *broker) one(ctx context.Context, m relay.Message) relay.Outcome {
	roll := b.chance.below(1000)
	if b.peace.Load() {
		roll = 1000
	}
	switch {
	case roll < 5:
		return relay.Unavailable(errors.New("connection refused"))
	case roll < 8: // the message arrives, the answer does not
		b.keep(m)
		return relay.Unavailable(errors.New("connection reset"))
	case roll < 30:
		return relay.Retry(errors.New("try again"))
	case roll < 33:
		return relay.Outcome{Class: relay.ClassRetry, After: 2 * time.Second, Err: errors.New("slow down")}
	case roll < 36:
		return relay.Permanent(errors.New("too large"))
	case roll < 40:
		time.Sleep(b.chance.upTo(5 * time.Second)) // longer than the lease
	case roll < 100:
		time.Sleep(b.chance.upTo(50 * time.Millisecond))
	}
	b.keep(m)
	return relay.Published(fmt.Sprintf("sim:%s", m.EventID))
}

func (b *broker) keep(m relay.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, m)
}

// link is how one relay process reaches the database and the broker. A dead process reaches neither, and what it
// was waiting for never comes.
type link struct {
	relay.Store
	broker *broker
	dead   atomic.Bool
}

var errKilled = errors.New("the process was killed")

func (l *link) Close() error { return nil }

func (l *link) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	if l.dead.Load() {
		return all(batch, relay.Unavailable(errKilled))
	}
	return l.broker.publish(ctx, batch)
}

func (l *link) Renew(ctx context.Context, beat relay.Heartbeat, held []relay.Lease) (relay.LeaseTable, error) {
	if l.dead.Load() {
		return relay.LeaseTable{}, errKilled
	}
	return l.Store.Renew(ctx, beat, held)
}

func (l *link) Acquire(ctx context.Context, m relay.Member, seen []relay.Lease) ([]relay.Lease, error) {
	if l.dead.Load() {
		return nil, errKilled
	}
	return l.Store.Acquire(ctx, m, seen)
}

func (l *link) Release(ctx context.Context, m relay.Member, held []relay.Lease) error {
	if l.dead.Load() {
		return errKilled
	}
	return l.Store.Release(ctx, m, held)
}

func (l *link) Leave(ctx context.Context, m relay.Member) error {
	if l.dead.Load() {
		return errKilled
	}
	return l.Store.Leave(ctx, m)
}

func (l *link) Read(ctx context.Context, req relay.ReadRequest) ([]relay.Event, error) {
	if l.dead.Load() {
		return nil, errKilled
	}
	return l.Store.Read(ctx, req)
}

func (l *link) Settle(ctx context.Context, m relay.Member, s []relay.Settlement) ([]string, error) {
	if l.dead.Load() {
		return nil, errKilled
	}
	return l.Store.Settle(ctx, m, s)
}
