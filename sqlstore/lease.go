package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/postrider/postrider/relay"
)

// Renew implements relay.Store. Each of its steps is one statement that commits by itself, so that a relay which
// is halted in between holds no lock that another one waits for.
func (s *Store) Renew(ctx context.Context, beat relay.Heartbeat, held []relay.Lease) (relay.LeaseTable, error) {
	const op = "renew leases"
	tables, err := s.fits(ctx, op)
	if err != nil {
		return relay.LeaseTable{}, err
	}
	if tables.shards != beat.Shards {
		return relay.LeaseTable{}, &relay.ShardCountError{Relay: beat.Name, Have: tables.shards, Want: beat.Shards}
	}
	if err := s.heartbeat(ctx, op, beat, relay.ClaimShard); err != nil {
		return relay.LeaseTable{}, err
	}
	s.leases.Store(true)
	if len(held) > 0 {
		err := s.run(ctx, op, "renew", nil, beat.Name, beat.ID, beat.LeaseTTL.Seconds(), leasesJSON(held))
		if err != nil {
			return relay.LeaseTable{}, err
		}
	}
	return s.leaseTable(ctx, op, beat.Member)
}

// heartbeat records that the member lives, unless relays are at work on the table with which it cannot share the work.
func (s *Store) heartbeat(ctx context.Context, op string, beat relay.Heartbeat, claim relay.Claim) error {
	if beat.Claim != "" && beat.Claim != claim {
		return &relay.ClaimConflictError{Name: beat.Name, Claim: beat.Claim, Other: claim, Table: s.config.Table}
	}
	sinks, err := json.Marshal(beat.Sinks)
	if err != nil {
		return s.fail(op, err)
	}
	var isNew []bool
	err = s.run(ctx, op, "heartbeat", into(&isNew, scanValue[bool]),
		beat.ID, beat.Name, beat.Host, beat.Version, beat.LeaseTTL.Seconds(), string(sinks), string(claim))
	if err != nil {
		return err
	}
	var others []relay.Member
	err = s.run(ctx, op, "conflict", into(&others, scanStranger), beat.ID, beat.Name, isNew[0])
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return errors.Join(s.conflict(beat.Name, claim, others[0]), s.Leave(ctx, beat.Member))
	}
	if isNew[0] {
		return s.run(ctx, op, "forget", nil)
	}
	return nil
}

func (s *Store) conflict(name string, claim relay.Claim, other relay.Member) error {
	if other.Name != name {
		return &relay.NameConflictError{Name: name, Other: other.Name, Table: s.config.Table}
	}
	return &relay.ClaimConflictError{Name: name, Claim: claim, Other: other.Claim, Table: s.config.Table}
}

func (s *Store) leaseTable(ctx context.Context, op string, m relay.Member) (t relay.LeaseTable, err error) {
	if err := s.run(ctx, op, "leases", into(&t.Shards, scanShardLease), m.Name); err != nil {
		return t, err
	}
	if len(t.Shards) < m.Shards {
		if err := s.run(ctx, op, "create_shards", nil, m.Name, m.Shards); err != nil {
			return t, err
		}
		if err := s.run(ctx, op, "leases", into(&t.Shards, scanShardLease), m.Name); err != nil {
			return t, err
		}
	}
	err = s.run(ctx, op, "live", into(&t.Live, scanValue[string]), m.Name)
	return t, err
}

// Acquire implements relay.Store.
func (s *Store) Acquire(ctx context.Context, m relay.Member, seen []relay.Lease) (taken []relay.Lease, err error) {
	if len(seen) == 0 {
		return nil, nil
	}
	err = s.run(ctx, "acquire shards", "acquire", into(&taken, scanLease),
		m.Name, m.ID, m.LeaseTTL.Seconds(), leasesJSON(seen))
	return taken, err
}

// Release implements relay.Store.
func (s *Store) Release(ctx context.Context, m relay.Member, held []relay.Lease) error {
	if len(held) == 0 {
		return nil
	}
	return s.run(ctx, "release shards", "release", nil, m.Name, m.ID, leasesJSON(held))
}

// Leave implements relay.Store.
func (s *Store) Leave(ctx context.Context, m relay.Member) error {
	return s.run(ctx, "leave", "leave", nil, m.ID)
}

func scanLease(rows *sql.Rows) (l relay.Lease, err error) {
	err = rows.Scan(&l.Shard, &l.Epoch)
	return l, err
}

func scanStranger(rows *sql.Rows) (m relay.Member, err error) {
	err = rows.Scan(&m.Name, &m.Claim)
	return m, err
}

func scanShardLease(rows *sql.Rows) (l relay.ShardLease, err error) {
	err = rows.Scan(&l.Shard, &l.Epoch, &l.Owner, &l.Expired)
	return l, err
}

func leasesJSON(leases []relay.Lease) string {
	type row struct {
		Shard int   `json:"shard"`
		Epoch int64 `json:"epoch"`
	}
	rows := make([]row, len(leases))
	for i, l := range leases {
		rows[i] = row(l)
	}
	slices.SortFunc(rows, func(a, b row) int { return a.Shard - b.Shard }) // the order in which everyone locks
	return toJSON(rows)
}
