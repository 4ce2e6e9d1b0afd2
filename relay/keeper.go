package relay

import (
	"context"
	"errors"
	"time"

	"github.com/postrider/postrider/relay/internal/lifecycle"
)

const (
	renewalsPerLease  = 10                     // so that several renewals can fail before a lease is in danger
	maxRenewPause     = 2 * time.Second        // a new relay gets its share within a few seconds, however long leases are
	rebalancePause    = 200 * time.Millisecond // while shards change hands
	renewalTimeouts   = 3                      // a renewal may take a third of a lease
	leaveTimeout      = 5 * time.Second
	firstRenewTimeout = 10 * time.Second
)

// keepLeases renews the heartbeat and the leases, takes this relay's share of the shards, and gives up what is
// beyond it, until ctx ends.
func (e *engine) keepLeases(ctx context.Context) {
	for {
		moving, err := e.renew(ctx)
		if ctx.Err() != nil {
			return
		}
		e.health.note(loopLease, err)
		wait := e.renewPause()
		if moving || err != nil {
			wait = min(wait, rebalancePause)
		}
		if !e.waitToRenew(ctx, wait) {
			return
		}
	}
}

func (e *engine) waitToRenew(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-e.suspicion:
	}
	return true
}

// suspect stops work under leases whose settlements were fenced, and asks for a renewal at once to learn what is
// still ours. Without it the relay would read and send the same events again until the next renewal.
func (e *engine) suspect(fenced []Lease) {
	e.leases.suspect(fenced)
	select {
	case e.suspicion <- struct{}{}:
	default:
	}
}

func (e *engine) renewPause() time.Duration {
	return min(e.cfg.Lease/renewalsPerLease, maxRenewPause)
}

// renew does one round. moving says that shards are changing hands, so that the next round should be soon.
func (e *engine) renew(ctx context.Context) (moving bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease/renewalTimeouts)
	defer cancel()

	held, sentAt := e.leases.renewable(), time.Now()
	table, err := e.cfg.Store.Renew(ctx, Heartbeat{Member: e.member, Sinks: e.sinkStates()}, held)
	if err != nil {
		return false, err
	}
	e.loseLeases(e.leases.sync(table, e.member.ID, held, sentAt))

	take, give := lifecycle.Share(e.sharedShards(table), table.Live, e.member.ID)
	e.leases.drain(give)
	released, err := e.releaseDrained(ctx)
	if err != nil {
		return true, err
	}
	taken, err := e.acquire(ctx, table, take)
	if err != nil {
		return true, err
	}
	if released+taken > 0 {
		e.log.Info("shards changed hands", "taken", taken, "released", released, "held", e.leases.count(), "relays", len(table.Live))
		e.cfg.Hooks.leases(e.leases.count())
		e.Hint()
	}
	return released+taken > 0 || len(e.leases.draining()) > 0 || len(take) > 0, nil
}

// sharedShards is the lease table as lifecycle.Share wants it. A shard that is being drained counts as gone.
func (e *engine) sharedShards(table LeaseTable) []lifecycle.Shard {
	shards := make([]lifecycle.Shard, 0, len(table.Shards))
	for _, s := range table.Shards {
		mine := e.leases.holds(s.Lease)
		open := !mine && s.Owner != e.member.ID && (s.Owner == "" || s.Expired)
		shards = append(shards, lifecycle.Shard{Index: s.Shard, Mine: mine, Open: open})
	}
	return shards
}

// loseLeases forgets what was read under leases that others now hold. What is already at a sink is fenced when it
// is settled.
func (e *engine) loseLeases(lost []int) {
	if len(lost) == 0 {
		return
	}
	if e.cfg.Claim == ClaimRow {
		e.log.Warn("claims lost: other relays took events because this one did not renew its claims in time; what was not sent yet is given back")
	} else {
		e.log.Warn("leases lost: other relays took these shards because this one did not renew them in time; outcomes that are still on their way change nothing",
			"shards", lost)
	}
	for _, shard := range lost {
		e.cfg.Hooks.leaseLost(shard)
	}
	e.cfg.Hooks.leases(e.leases.count())
	e.flight.dropLeases(func(l Lease) bool { return !e.leases.holds(l) })
}

// releaseDrained gives up the shards that are marked for it and of which nothing is in flight any more.
func (e *engine) releaseDrained(ctx context.Context) (int, error) {
	draining := e.leases.draining()
	if len(draining) == 0 {
		return 0, nil
	}
	e.flight.dropLeases(func(l Lease) bool { return !e.leases.holds(l) })
	var drained []Lease
	for _, l := range draining {
		if e.flight.shardEmpty(l.Shard) {
			drained = append(drained, l)
		}
	}
	if len(drained) == 0 {
		return 0, nil
	}
	if err := e.cfg.Store.Release(ctx, e.member, drained); err != nil {
		return 0, err
	}
	e.leases.forget(drained)
	return len(drained), nil
}

func (e *engine) acquire(ctx context.Context, table LeaseTable, take []int) (int, error) {
	if len(take) == 0 {
		return 0, nil
	}
	epochs := make(map[int]int64, len(table.Shards))
	for _, s := range table.Shards {
		epochs[s.Shard] = s.Epoch
	}
	seen := make([]Lease, len(take))
	for i, shard := range take {
		seen[i] = Lease{Shard: shard, Epoch: epochs[shard]}
	}
	sentAt := time.Now()
	taken, err := e.cfg.Store.Acquire(ctx, e.member, seen)
	if err != nil {
		return 0, err
	}
	e.leases.grant(taken, sentAt)
	return len(taken), nil
}

// leave gives everything back at the end of an orderly stop. Shards of which something is still in flight are not
// released: their leases lapse.
func (e *engine) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	var idle []Lease
	for _, l := range e.leases.all() {
		if e.flight.shardEmpty(l.Shard) {
			idle = append(idle, l)
		}
	}
	err := errors.Join(
		e.cfg.Store.Release(ctx, e.member, idle),
		e.cfg.Store.Leave(ctx, e.member),
	)
	if err != nil {
		e.log.Warn("leases could not be released; they lapse by themselves", "error", err)
	}
}
