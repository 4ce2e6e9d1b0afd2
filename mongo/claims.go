package mongo

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/internal/claims"
	"github.com/postrider/postrider/relay"
)

var _ relay.Store = (*RowClaims)(nil)

// RowClaims is a Store whose events are claimed one by one (relay.ClaimRow) instead of by leased shards. It serves one
// relay at a time: each relay.Relay needs its own. It is safe for concurrent use.
//
// A claim is a token in the document and a time at which it runs out; who does not know the token changes nothing. It is
// taken by comparing and setting in one update of the document. Renew prolongs the claims of what is in flight, but for
// those that are new, so the lease that it answers for guards them (see claims.Lasts). Because it answers for one lease in place of all shards, the relay believes to own
// one shard, and every event that Read returns is in it.
//
// Claims that run out are taken over by another relay under a token of its own, which spends no attempt, as with
// sqlstore.RowClaims: from the second time on a relay holds no more than one such event, and after five times the event
// is read as malformed.
type RowClaims struct {
	*Store
	book *claims.Book

	mu     sync.Mutex
	member relay.Member // of the last Renew
	live   []string     // the members that were live then
	epoch  int64        // of the one lease
	owned  bool         // the member has acquired it
}

// RowClaims returns the outbox for one relay that claims its events one by one. In a collection that somebody else
// designed this needs Mapping.ClaimToken and Mapping.ProcessingUntil.
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
	if r.theirs != nil && r.theirs.ClaimToken == "" {
		return relay.LeaseTable{}, r.unfit(op, "map both, or use claim: shard", "the collection has no fields for claims: claim_token and processing_until are not mapped")
	}
	if _, err := r.fits(ctx, op); err != nil {
		return relay.LeaseTable{}, err
	}
	live, err := r.heartbeat(ctx, beat, relay.ClaimRow)
	if err != nil {
		return relay.LeaseTable{}, r.fail(op, err)
	}
	r.enter(beat.Member)
	begin := time.Now()
	mine := r.book.Renewable(begin.Add(beat.LeaseTTL))
	ours, err := r.prolong(ctx, beat.Member, mine)
	if err != nil {
		return relay.LeaseTable{}, r.fail(op, err)
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

// prolong renews claims and returns which events are still ours.
func (r *RowClaims) prolong(ctx context.Context, m relay.Member, mine []claims.Claim) (map[string]bool, error) {
	if len(mine) == 0 {
		return nil, nil
	}
	shape := r.shape()
	update := bson.A{bson.M{"$set": bson.M{shape.until: fromNow(claims.Lasts(m.LeaseTTL))}}}
	if _, err := r.events.UpdateMany(ctx, shape.ours(mine), update); err != nil {
		return nil, err
	}
	return r.stillOurs(ctx, mine)
}

func (r *RowClaims) stillOurs(ctx context.Context, mine []claims.Claim) (map[string]bool, error) {
	found, err := find[waitingDoc](ctx, r.events, r.shape().ours(mine), options.Find().SetProjection(bson.M{"_id": 1}))
	ours := make(map[string]bool, len(found))
	for _, d := range found {
		ours[idText(d.ID)] = true
	}
	return ours, err
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
	return r.fail("release claims", r.giveBack(ctx, r.book.Surplus(nil)))
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

// giveBack makes the events of claims PENDING again.
func (r *RowClaims) giveBack(ctx context.Context, mine []claims.Claim) error {
	if len(mine) == 0 {
		return nil
	}
	shape := r.shape()
	if _, err := r.events.UpdateMany(ctx, shape.ours(mine), shape.giveBack); err != nil {
		return err
	}
	r.book.Released(mine)
	return nil
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
