package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/postrider/postrider/relay"
)

// Backlog implements relay.Store. The oldest event is the oldest among those that stand first in their shard,
// fell due first there, or are the first that failed there.
//
// For relays that lease shards it also gives back what relays that claimed rows have left behind, before the table was
// given to these. Renew must not do that: a lease must not depend on whether the outbox can be written.
func (s *Store) Backlog(ctx context.Context) (relay.Backlog, error) {
	const op = "measure the backlog"
	n, err := s.counts(ctx, op)
	if err != nil {
		return relay.Backlog{}, err
	}
	oldest, err := s.oldest(ctx, op)
	if err != nil {
		return relay.Backlog{}, err
	}
	b := relay.Backlog{
		Pending: min(n.pending(), relay.PendingCap),
		Capped:  n.pending() > relay.PendingCap,
		Dead:    min(n.dead, relay.PendingCap),
	}
	for _, o := range oldest {
		b.OldestPending = max(b.OldestPending, o.age)
	}
	if n.processing > 0 && s.leases.Load() && (s.mapping == nil || s.mapping.canClaim()) {
		err = s.run(ctx, op, "claim_expired", nil)
	}
	return b, err
}

// counts are how many events there are; each goes no further than one above relay.PendingCap.
type counts struct {
	ready, waiting, processing, dead, discarded int64

	rows int64 // in the whole table, estimated
}

func (c counts) pending() int64 { return c.ready + c.waiting }

func (s *Store) counts(ctx context.Context, op string) (counts, error) {
	var list []counts
	err := s.run(ctx, op, "counts", into(&list, func(rows *sql.Rows) (c counts, err error) {
		err = rows.Scan(&c.ready, &c.waiting, &c.processing, &c.dead, &c.discarded, &c.rows)
		return c, err
	}), relay.PendingCap+1)
	if err != nil {
		return counts{}, err
	}
	return list[0], nil
}

// oldestEvent is the oldest event of a shard that is due or has failed.
type oldestEvent struct {
	shard                   int
	age                     time.Duration
	key, eventID, lastError string
}

func (s *Store) oldest(ctx context.Context, op string) (list []oldestEvent, err error) {
	tables, err := s.fits(ctx, op)
	if err != nil {
		return nil, err
	}
	err = s.run(ctx, op, "oldest", into(&list, func(rows *sql.Rows) (o oldestEvent, err error) {
		var age float64
		err = rows.Scan(&o.shard, &age, &o.key, &o.eventID, &o.lastError)
		o.age = max(seconds(age), 0)
		return o, err
	}), tables.shards)
	return list, err
}
