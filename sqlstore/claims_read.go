package sqlstore

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/internal/claims"
	"github.com/postrider/postrider/relay"
)

// candidate is an event that can be claimed, as the statement that claims it takes it.
type candidate struct {
	claims.Claim
	RetryCount int    `json:"retry_count"`
	Seen       string `json:"seen,omitempty"` // the token of the claim that ran out

	read relay.Event
}

// Read claims events and returns them. It first gives back the claims of events that the relay no longer has in flight.
// The claims are committed when it returns; after an error the next Read gives back what may have been claimed.
func (r *RowClaims) Read(ctx context.Context, req relay.ReadRequest) ([]relay.Event, error) {
	const op = "claim"
	m, err := r.current()
	if err != nil {
		return nil, r.fail(op, err)
	}
	tables, err := r.fits(ctx, op)
	if err != nil {
		return nil, err
	}
	ids, err := r.ids(ctx, op)
	if err != nil {
		return nil, err
	}
	surplus := r.book.Surplus(req.InFlight)
	look := search{ids: ids, tokens: claims.NewTokens(), ReadRequest: req, shards: tables.shards, scanRow: scanEvent}
	if r.mapping != nil {
		look.scanRow = r.scanTheirs
	}
	var candidates []candidate
	var taken map[string]bool
	var begin time.Time
	err = r.repeat(ctx, op, func() error {
		begin = time.Now()
		return r.inTx(ctx, func(tx *sql.Tx) (err error) {
			if err := r.giveBack(ctx, op, tx, surplus); err != nil {
				return err
			}
			if candidates, err = r.candidates(ctx, op, tx, look); err != nil {
				return err
			}
			taken, err = r.take(ctx, op, tx, m, candidates)
			return err
		})
	})
	if err != nil {
		r.book.Doubt(claimsOf(candidates))
		return nil, err
	}
	r.book.Released(surplus)
	return r.enterClaims(ctx, op, m, onlyTaken(candidates, taken), begin.Add(claims.Lasts(m.LeaseTTL)))
}

func (r *RowClaims) giveBack(ctx context.Context, op string, tx *sql.Tx, mine []claims.Claim) error {
	if len(mine) == 0 {
		return nil
	}
	return r.runIn(ctx, op, tx, "claim_release", nil, toJSON(mine))
}

// search is one look for events to claim.
type search struct {
	relay.ReadRequest
	ids    ids
	tokens claims.Tokens
	shards int

	scanRow func(rows *sql.Rows, more ...any) (relay.Event, error)
}

// candidates returns what can be claimed, within the limits.
func (r *RowClaims) candidates(ctx context.Context, op string, tx *sql.Tx, req search) (list []candidate, err error) {
	flying := make(map[string]bool, len(req.InFlight))
	for _, id := range req.InFlight {
		flying[id] = true
	}
	suspects := 1
	if r.book.HoldsSuspect() {
		suspects = 0
	}
	read := func(rows *sql.Rows) error {
		for size := 0; size < req.MaxBytes && rows.Next(); {
			c, err := req.scan(rows)
			if err != nil {
				return err
			}
			if !flying[c.Event] {
				list = append(list, c)
				size += c.read.Size()
			}
		}
		return nil
	}
	shards, limit := toJSON(inTurnFrom(rand.IntN(req.shards), req.shards)), min(req.Limit, req.PerShard)
	q, err := r.candidatesQuery(ctx, op, tx, shards, limit)
	if err != nil {
		return nil, err
	}
	if r.mapping != nil {
		q = r.theirCandidates(q, req.ReadRequest, limit)
	}
	err = r.runAll(ctx, tx, q, read, []any{shards, kindsJSON(req.Skip), toJSON(append([]string{}, req.SkipKeys...)), limit, suspects})
	return list, err
}

// candidatesQuery returns the query for candidates. In MySQL it is told which shards have any, and looks for twice as many
// as are wanted, lest all it finds be locked by another claimer. Every other time those come first that were not to be
// sent at once, so that neither kind waits for the end of the other.
func (r *RowClaims) candidatesQuery(ctx context.Context, op string, tx *sql.Tx, shards string, limit int) (query, error) {
	q, err := r.query(ctx, op, "claim_candidates")
	if _, inParts := r.queries["heads"]; !inParts || err != nil {
		return q, err
	}
	var heads []string
	if err := r.runIn(ctx, op, tx, "heads", into(&heads, scanValue[string]), shards); err != nil {
		return nil, err
	}
	heads = append(heads, "-1") // no list may be empty
	return q.with("{heads}", strings.Join(heads, ", ")).
		with("{look}", strconv.Itoa(2*limit)).
		with("{waiting_turn}", strconv.Itoa(1+3*rand.IntN(2))), nil
}

// inTurnFrom lists the shards from first on, so that relays that read at the same time start at different places.
func inTurnFrom(first, shards int) []int {
	list := make([]int, shards)
	for i := range list {
		list[i] = (first + i) % shards
	}
	return list
}

func (l search) scan(rows *sql.Rows) (c candidate, err error) {
	if c.read, err = l.scanRow(rows, &c.Seen); err != nil {
		return c, err
	}
	if c.ID, err = l.ids.value(c.read.ID); err != nil {
		return c, err
	}
	c.Event, c.Token, c.RetryCount = c.read.ID, l.tokens.After(c.Seen), c.read.RetryCount
	c.read.Shard = 0 // the one that the relay knows
	if c.read.Malformed == nil {
		c.read.Malformed = claims.Verdict(c.Token)
	}
	return c, nil
}

// take claims candidates and tells those that nobody else has taken before.
func (r *RowClaims) take(ctx context.Context, op string, tx *sql.Tx, m relay.Member, candidates []candidate) (taken map[string]bool, err error) {
	if len(candidates) == 0 {
		return nil, nil
	}
	var ids []string
	err = r.runIn(ctx, op, tx, "claim_take", into(&ids, scanValue[string]), toJSON(candidates), claims.Lasts(m.LeaseTTL).Seconds(), m.ID, claims.KeptOfVain)
	taken = make(map[string]bool, len(ids))
	for _, id := range ids {
		taken[id] = true
	}
	return taken, err
}

// enterClaims makes claims, which last until the given time or longer, known to renewals. One that has begun meanwhile has not
// prolonged them, and yet the relay takes its lease to guard them, so they are prolonged here if they are shorter.
func (r *RowClaims) enterClaims(ctx context.Context, op string, m relay.Member, taken []candidate, until time.Time) ([]relay.Event, error) {
	mine := claimsOf(taken)
	if r.book.Add(mine, until) {
		until = time.Now().Add(claims.Lasts(m.LeaseTTL))
		ours, err := r.prolong(ctx, op, m, mine)
		if err != nil {
			r.book.Doubt(mine)
			return nil, err
		}
		r.book.Prolonged(mine, ours, until)
		taken = onlyTaken(taken, ours)
	}
	events := make([]relay.Event, len(taken))
	for i, c := range taken {
		events[i] = c.read
	}
	return events, nil
}

func onlyTaken(candidates []candidate, ours map[string]bool) (taken []candidate) {
	for _, c := range candidates {
		if ours[c.Event] {
			taken = append(taken, c)
		}
	}
	return taken
}

func claimsOf(candidates []candidate) []claims.Claim {
	mine := make([]claims.Claim, len(candidates))
	for i, c := range candidates {
		mine[i] = c.Claim
	}
	return mine
}
