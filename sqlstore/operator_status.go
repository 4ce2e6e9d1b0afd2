package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// Status implements operator.Store. PUBLISHED is what is left of the database's estimate of all rows; the other states
// are counted, up to relay.PendingCap + 1 (PENDING up to twice that).
func (s *Store) Status(ctx context.Context, relayName string) (operator.Status, error) {
	const op = "read the status"
	n, err := s.counts(ctx, op)
	if err != nil {
		return operator.Status{}, err
	}
	heldKeys, err := s.heldKeys(ctx, op)
	if err != nil {
		return operator.Status{}, err
	}
	oldest, err := s.oldest(ctx, op)
	if err != nil {
		return operator.Status{}, err
	}
	shards, err := s.shards(ctx, op, relayName)
	if err != nil {
		return operator.Status{}, err
	}
	reports, err := s.reports(ctx, op, relayName)
	if err != nil {
		return operator.Status{}, err
	}
	status := operator.Status{
		States: map[postrider.State]int64{
			postrider.StatePending:    n.pending(),
			postrider.StateProcessing: n.processing,
			postrider.StatePublished:  max(n.rows-n.pending()-n.processing-n.dead-n.discarded, 0),
			postrider.StateDead:       n.dead,
			postrider.StateDiscarded:  n.discarded,
		},
		Estimated: true,
		HeldKeys:  heldKeys,
		Shards:    shards,
		Sinks:     operator.WorstSinks(liveSinks(reports)),
	}
	for _, o := range oldest {
		age := o.age.Seconds()
		status.OldestPendingSeconds = max(status.OldestPendingSeconds, age)
		status.KeyGroups = append(status.KeyGroups, operator.KeyGroup{
			Shard: o.shard, OldestPendingSeconds: age, OldestKey: o.key, OldestEventID: o.eventID, LastError: o.lastError,
		})
	}
	for _, r := range reports {
		status.Relays = append(status.Relays, r.relay)
	}
	return status, nil
}

// heldKeys counts the keys that wait for an operator.
func (s *Store) heldKeys(ctx context.Context, op string) (int64, error) {
	var list []int64
	if err := s.run(ctx, op, "held_keys", into(&list, scanValue[int64])); err != nil {
		return 0, err
	}
	return list[0], nil
}

func (s *Store) shards(ctx context.Context, op, relayName string) (operator.Shards, error) {
	var list []operator.Shards
	err := s.run(ctx, op, "shards", into(&list, func(rows *sql.Rows) (n operator.Shards, err error) {
		err = rows.Scan(&n.Total, &n.Owned, &n.Free, &n.Expired)
		return n, err
	}), relayName)
	if err != nil {
		return operator.Shards{}, err
	}
	return list[0], nil
}

// report is what a relay wrote with its last heartbeat.
type report struct {
	relay operator.Relay
	live  bool
	sinks []relay.SinkState
}

func (s *Store) reports(ctx context.Context, op, relayName string) (list []report, err error) {
	err = s.run(ctx, op, "relays", into(&list, func(rows *sql.Rows) (r report, err error) {
		var sinks []byte
		err = rows.Scan(&r.relay.ID, &r.relay.Name, &r.relay.Host, &r.relay.Version, &r.relay.HeartbeatSeconds,
			&r.relay.Shards, &r.live, &sinks, &r.relay.Claim)
		if err != nil {
			return report{}, err
		}
		r.relay.HeartbeatSeconds = max(r.relay.HeartbeatSeconds, 0)
		return r, json.Unmarshal(sinks, &r.sinks)
	}), relayName)
	return list, err
}

// liveSinks is what the live relays tell of their sinks.
func liveSinks(reports []report) (sinks [][]relay.SinkState) {
	for _, r := range reports {
		if r.live {
			sinks = append(sinks, r.sinks)
		}
	}
	return sinks
}
