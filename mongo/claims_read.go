package mongo

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/postrider/postrider/internal/claims"
	"github.com/postrider/postrider/relay"
)

// claimable is an event that can be claimed.
type claimable struct {
	claims.Claim
	seen string // the token of the claim that ran out
	read relay.Event
}

// claimedInVain are the tokens of claims before which another one ran out.
var claimedInVain = bson.Regex{Pattern: claims.InVain}

// maxLooks is how often a read looks again when others were faster with all that it found.
const maxLooks = 5

// Read claims events and returns them. It first gives back the claims of events that the relay no longer has in flight.
// After an error the next Read gives back what may have been claimed.
func (r *RowClaims) Read(ctx context.Context, req relay.ReadRequest) ([]relay.Event, error) {
	const op = "claim"
	m, err := r.current()
	if err != nil {
		return nil, r.fail(op, err)
	}
	if _, err := r.fits(ctx, op); err != nil {
		return nil, err
	}
	if err := r.giveBack(ctx, r.book.Surplus(req.InFlight)); err != nil {
		return nil, r.fail(op, err)
	}
	for range maxLooks {
		events, found, err := r.claim(ctx, m, req)
		if err != nil || len(events) > 0 || !found {
			return events, r.fail(op, err)
		}
	}
	return nil, nil
}

// claim looks once, and tells whether it found anything, be it that others were faster.
func (r *RowClaims) claim(ctx context.Context, m relay.Member, req relay.ReadRequest) (events []relay.Event, found bool, err error) {
	look := &look{RowClaims: r, ReadRequest: req, tokens: claims.NewTokens()}
	candidates, err := look.candidates(ctx)
	if err != nil || len(candidates) == 0 {
		return nil, look.outrun, err
	}
	begin := time.Now()
	taken, err := look.take(ctx, m, candidates)
	if err != nil {
		r.book.Doubt(claimsOf(candidates))
		return nil, true, err
	}
	events, err = r.enterClaims(ctx, m, taken, begin.Add(claims.Lasts(m.LeaseTTL)))
	return events, true, err
}

// look is one look for events to claim.
type look struct {
	*RowClaims
	relay.ReadRequest
	tokens claims.Tokens
	now    time.Time
	outrun bool // something that was found had been claimed before it was fetched
}

// candidates returns what can be claimed, within the limits: first what others have left behind.
func (l *look) candidates(ctx context.Context) (list []claimable, err error) {
	if l.now, err = l.Store.now(ctx); err != nil {
		return nil, err
	}
	flying := make(map[string]bool, len(l.InFlight))
	for _, id := range l.InFlight {
		flying[id] = true
	}
	size := 0
	shape := l.shape()
	suspects := 1
	if l.book.HoldsSuspect() {
		suspects = 0
	}
	for _, part := range []struct {
		limit int
		ids   func(limit int) ([]any, error)
		of    bson.M
	}{
		{l.Limit, func(n int) ([]any, error) {
			return l.leftBehind(ctx, bson.M{"$not": claimedInVain, "$nin": noToken}, n)
		}, shape.claimed},
		{suspects, func(n int) ([]any, error) { return l.leftBehind(ctx, claimedInVain, n) }, shape.claimed},
		{l.Limit, func(n int) ([]any, error) { return l.free(ctx, n) }, shape.pending},
	} {
		limit := min(part.limit, l.Limit-len(list))
		if limit <= 0 || size >= l.MaxBytes {
			continue
		}
		ids, err := part.ids(limit)
		if err != nil {
			return nil, err
		}
		found, err := l.fetchClaimable(ctx, ids, part.of)
		if err != nil {
			return nil, err
		}
		l.outrun = l.outrun || len(found) < len(ids)
		for _, c := range found {
			if size < l.MaxBytes && !flying[c.Event] && l.wants(c.read) {
				list = append(list, c)
				size += c.read.Size()
			}
		}
	}
	return list, nil
}

// wants leaves out kinds and keys of which nothing is wanted, where the query did not.
func (l *look) wants(e relay.Event) bool {
	return !slices.Contains(l.Skip, e.Kind()) && !slices.Contains(l.SkipKeys, e.AggregateID)
}

// leftBehind returns the ids of events whose claims ran out and whose tokens are such.
func (l *look) leftBehind(ctx context.Context, token any, limit int) ([]any, error) {
	shape := l.shape()
	found, err := find[waitingDoc](ctx, l.events, shape.expired(l.now, bson.M{shape.token: token}),
		options.Find().SetSort(ascending(shape.until, "_id")).SetLimit(int64(limit)).SetProjection(bson.M{"_id": 1}))
	return idsOf(found), err
}

func idsOf(docs []waitingDoc) []any {
	ids := make([]any, len(docs))
	for i, d := range docs {
		ids[i] = d.ID
	}
	return ids
}

// free returns the ids of events that nobody has claimed. Relays that look at the same time begin at different places.
func (l *look) free(ctx context.Context, limit int) ([]any, error) {
	if l.theirs != nil {
		return l.freeOfTheirs(ctx, limit)
	}
	req := l.ReadRequest
	req.Shards = inTurnFrom(rand.IntN(l.known().Shards), l.known().Shards)
	req.InFlight, req.PerShard, req.Limit = nil, limit, limit
	c, err := l.choice(req)
	if err != nil {
		return nil, err
	}
	c.now = l.now
	chosen, err := l.choose(ctx, c)
	ids := make([]any, len(chosen))
	for i, id := range chosen {
		ids[i] = id
	}
	return ids, err
}

// inTurnFrom lists the shards from first on.
func inTurnFrom(first, shards int) []int {
	list := make([]int, shards)
	for i := range list {
		list[i] = (first + i) % shards
	}
	return list
}

// moreThanWanted is how many times as many events of theirs are found as are wanted, so that relays take different ones.
const moreThanWanted = 4

func (l *look) freeOfTheirs(ctx context.Context, limit int) ([]any, error) {
	req := l.ReadRequest
	req.InFlight, req.Limit = nil, moreThanWanted*limit
	w := &walk{Store: l.Store, ReadRequest: req, now: l.now, room: map[int]int{}, chosen: map[int][]any{}}
	for shard := range l.known().Shards {
		w.room[shard] = req.Limit
	}
	match, err := w.match()
	if err != nil {
		return nil, err
	}
	if err := w.choose(ctx, match, false); err != nil {
		return nil, err
	}
	var ids []any
	for _, shard := range inTurnFrom(rand.IntN(l.known().Shards), l.known().Shards) {
		ids = append(ids, w.chosen[shard]...)
	}
	return ids[:min(limit, len(ids))], nil
}

// fetchClaimable reads events of the ids for which the condition holds.
func (l *look) fetchClaimable(ctx context.Context, ids []any, condition bson.M) (list []claimable, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if l.theirs != nil {
		rows, err := l.fetchTheirs(ctx, ids, condition)
		for _, r := range rows {
			list = append(list, l.claimable(r.ref, r.ClaimToken, r.event(idText(r.ref), l.now, r.malformed)))
		}
		return list, err
	}
	docs, err := find[bson.Raw](ctx, l.events, with(condition, bson.M{"_id": bson.M{"$in": ids}}))
	for _, raw := range docs {
		seen, _ := raw.Lookup("claim_token").StringValueOK()
		id, _ := raw.Lookup("_id").ObjectIDOK()
		list = append(list, l.claimable(id, seen, event(raw, l.now)))
	}
	return list, err
}

func (l *look) claimable(id any, seen string, e relay.Event) claimable {
	c := claimable{Claim: claims.Claim{ID: id, Event: e.ID, Token: l.tokens.After(seen)}, seen: seen, read: e}
	c.read.Shard = 0 // the one that the relay knows
	if c.read.Malformed == nil {
		c.read.Malformed = claims.Verdict(c.Token)
	}
	return c
}

// take claims candidates and returns those that nobody else has taken before. Each document is compared with what was
// seen of it and changed in one step; there is one update for each, since FerretDB compares only then.
func (l *look) take(ctx context.Context, m relay.Member, candidates []claimable) (taken []claimable, err error) {
	shape := l.shape()
	writes := make([]driver.WriteModel, len(candidates))
	for i, c := range candidates {
		id := bson.M{"_id": c.ID}
		filter := shape.expired(l.now, with(id, bson.M{shape.token: c.seen}))
		if c.seen == "" {
			filter = bson.M{"$and": bson.A{id, shape.pending, l.isDue()}}
		}
		set := with(shape.take, bson.M{shape.token: literal(c.Token), shape.until: fromNow(claims.Lasts(m.LeaseTTL))})
		writes[i] = driver.NewUpdateOneModel().SetFilter(filter).SetUpdate(bson.A{bson.M{"$set": set}})
	}
	if _, err := l.events.BulkWrite(ctx, writes, options.BulkWrite().SetOrdered(false)); err != nil {
		return nil, err
	}
	ours, err := l.stillOurs(ctx, claimsOf(candidates))
	if err != nil {
		return nil, err
	}
	var notes []bson.M
	for _, c := range candidates {
		if !ours[c.Event] {
			continue
		}
		taken = append(taken, c)
		if c.seen != "" {
			notes = append(notes, bson.M{"event": c.ID, "at": l.now, "outcome": "retry", "error": claims.KeptOfVain, "actor": m.ID})
		}
	}
	if len(notes) > 0 {
		_, err = l.attempts.InsertMany(ctx, notes)
	}
	return taken, err
}

// isDue also leaves out what failed since it was read.
func (l *look) isDue() bson.M {
	if l.theirs != nil {
		return l.theirs.isDue(l.now)
	}
	return bson.M{"$or": bson.A{bson.M{"waiting": false}, bson.M{"next_attempt_at": bson.M{"$lte": l.now}}}}
}

// enterClaims makes claims, which last until the given time or longer, known to renewals. One that has begun meanwhile has not
// prolonged them, and yet the relay takes its lease to guard them, so they are prolonged here if they are shorter.
func (r *RowClaims) enterClaims(ctx context.Context, m relay.Member, taken []claimable, until time.Time) (events []relay.Event, err error) {
	mine := claimsOf(taken)
	ours := map[string]bool{}
	for _, c := range mine {
		ours[c.Event] = true
	}
	if r.book.Add(mine, until) {
		until = time.Now().Add(claims.Lasts(m.LeaseTTL))
		if ours, err = r.prolong(ctx, m, mine); err != nil {
			r.book.Doubt(mine)
			return nil, err
		}
		r.book.Prolonged(mine, ours, until)
	}
	for _, c := range taken {
		if ours[c.Event] {
			events = append(events, c.read)
		}
	}
	return events, nil
}

func claimsOf(list []claimable) []claims.Claim {
	mine := make([]claims.Claim, len(list))
	for i, c := range list {
		mine[i] = c.Claim
	}
	return mine
}
