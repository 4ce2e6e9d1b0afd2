package sqlstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider/internal/claims"
	"github.com/postrider/postrider/relay"
)

var _ relay.Store = (*RowClaims)(nil)

// RowClaims is a Store whose events are claimed one by one (relay.ClaimRow) instead of by leased shards. It serves one
// relay at a time: each relay.Relay needs its own. It is safe for concurrent use.
//
// A claim is the state PROCESSING with a token and a time at which it runs out; who does not know the token changes
// nothing. Renew prolongs the claims of what is in flight, but for those that are new, so the lease that it answers for
// guards them: they never run out before that lease does (see claims.Lasts). Because it answers for one lease in place of all shards, the relay believes to own one
// shard, and every event that Read returns is in it.
//
// # Claims that run out
//
// When a relay dies, or cannot reach the database for longer than its lease, its claims run out and another relay takes
// the events over, each under a token of its own. This spends no attempt: an outage is not the event's failure. It is
// kept as a "retry" in the event's history.
//
// An event that kills every process that sends it must come to an end nevertheless, and must not take those along that
// happened to be in flight with it. The token counts for how many claims in a row an event had no outcome and was not
// given back. From the second time on a relay holds no more than one such event, so that the next death tells which one
// it was. After five deaths the event is read as malformed, and becomes DEAD.
type RowClaims struct {
	*Store
	book *claims.Book

	mu     sync.Mutex
	member relay.Member // of the last Renew
	live   []string     // the members that were live then
	epoch  int64        // of the one lease
	owned  bool         // the member has acquired it
}

// RowClaims returns the outbox for one relay that claims its events one by one.
func (s *Store) RowClaims() *RowClaims {
	return &RowClaims{Store: s, book: claims.NewBook()}
}

// Renew records the heartbeat and prolongs the claims of the member. When some of them were lost to other relays, the
// lease is free again, so that the member stops to send what it can no longer be sure of.
func (r *RowClaims) Renew(ctx context.Context, beat relay.Heartbeat, _ []relay.Lease) (relay.LeaseTable, error) {
	const op = "renew claims"
	if err := ctx.Err(); err != nil {
		return relay.LeaseTable{}, r.fail(op, err) // the last call of a relay that is over must not replace its successor
	}
	if r.mapping != nil && !r.mapping.canClaim() {
		return relay.LeaseTable{}, r.unfit(op, "map claim_token, processing_until and status.processing, or use claim: shard",
			"its rows cannot be claimed one by one: it has no columns for claims")
	}
	if _, err := r.fits(ctx, op); err != nil {
		return relay.LeaseTable{}, err
	}
	if err := r.heartbeat(ctx, op, beat, relay.ClaimRow); err != nil {
		return relay.LeaseTable{}, err
	}
	r.enter(beat.Member)
	begin := time.Now()
	mine := r.book.Renewable(begin.Add(beat.LeaseTTL))
	ours, err := r.prolong(ctx, op, beat.Member, mine)
	if err != nil {
		return relay.LeaseTable{}, err
	}
	var live []string
	if err := r.run(ctx, op, "live", into(&live, scanValue[string]), beat.Name); err != nil {
		return relay.LeaseTable{}, err
	}
	return r.table(live, r.book.Prolonged(mine, ours, begin.Add(claims.Lasts(beat.LeaseTTL)))), nil
}

// enter makes m the member that the claims belong to. Those of another one before it are left to run out: something may
// still be sending their events.
func (r *RowClaims) enter(m relay.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.member.ID != m.ID {
		r.book.Forget()
		r.owned = false
	}
	r.member = m
}

func (r *RowClaims) table(live []string, lost bool) relay.LeaseTable {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = live
	r.owned = r.owned && !lost
	lease := relay.ShardLease{Lease: relay.Lease{Epoch: r.epoch}}
	if r.owned {
		lease.Owner = r.member.ID
	}
	return relay.LeaseTable{Shards: []relay.ShardLease{lease}, Live: []string{r.member.ID}}
}

// prolong renews claims and returns the ids of the events that are still ours. It does so in parts: a settle of ours has to
// wait for the part with its events.
func (r *RowClaims) prolong(ctx context.Context, op string, m relay.Member, mine []claims.Claim) (ours map[string]bool, err error) {
	const part = 500
	ours = make(map[string]bool, len(mine))
	for some := range slices.Chunk(mine, part) {
		var found []string
		if err := r.run(ctx, op, "claim_renew", into(&found, scanValue[string]), toJSON(some), claims.Lasts(m.LeaseTTL).Seconds()); err != nil {
			return nil, err
		}
		for _, event := range found {
			ours[event] = true
		}
	}
	return ours, nil
}

// Acquire takes the one lease, which nobody else can have.
func (r *RowClaims) Acquire(_ context.Context, m relay.Member, seen []relay.Lease) ([]relay.Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range seen {
		if l == (relay.Lease{Epoch: r.epoch}) && !r.owned && m.ID == r.member.ID {
			r.epoch++
			r.owned = true
			return []relay.Lease{{Epoch: r.epoch}}, nil
		}
	}
	return nil, nil
}

// Release gives the lease up and with it everything that is still claimed. No attempt is spent.
func (r *RowClaims) Release(ctx context.Context, m relay.Member, held []relay.Lease) error {
	if len(held) == 0 || !r.giveUp(m, held[0]) {
		return nil
	}
	mine := r.book.Surplus(nil)
	if len(mine) == 0 {
		return nil
	}
	if err := r.run(ctx, "release claims", "claim_release", nil, toJSON(mine)); err != nil {
		return err
	}
	r.book.Released(mine)
	return nil
}

func (r *RowClaims) giveUp(m relay.Member, l relay.Lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.owned || m.ID != r.member.ID || l.Epoch != r.epoch {
		return false
	}
	r.owned = false
	return true
}

// Clean is Store.Clean by one of the live relays. The others are told that there is nothing to do.
func (r *RowClaims) Clean(ctx context.Context, req relay.CleanRequest) (relay.CleanResult, error) {
	if !r.cleans() {
		return relay.CleanResult{Last: req.After, Done: true}, nil
	}
	return r.Store.Clean(ctx, req)
}

// Tidy is Store.Tidy by one of the live relays.
func (r *RowClaims) Tidy(ctx context.Context) error {
	if !r.cleans() {
		return nil
	}
	return r.Store.Tidy(ctx)
}

func (r *RowClaims) cleans() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live) > 0 && r.live[0] == r.member.ID
}

var errNoMember = errors.New("Renew must come before Read: it tells whose claims they are")

func (r *RowClaims) current() (relay.Member, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.member.ID == "" {
		return relay.Member{}, errNoMember
	}
	return r.member, nil
}
