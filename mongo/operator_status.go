package mongo

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

// Status implements operator.Store. PUBLISHED is what is left of the database's estimate of all documents; the other
// states are counted, up to relay.PendingCap + 1 (PENDING up to twice that).
func (s *Store) Status(ctx context.Context, relayName string) (operator.Status, error) {
	const op = "read the status"
	states, oldest, err := s.measure(ctx, op)
	if err != nil {
		return operator.Status{}, err
	}
	all, err := s.events.EstimatedDocumentCount(ctx)
	if err != nil {
		return operator.Status{}, s.fail(op, err)
	}
	for _, n := range states {
		all -= n
	}
	states[postrider.StatePublished] = max(all, 0)
	members, err := s.members(ctx, relayName)
	if err != nil {
		return operator.Status{}, s.fail(op, err)
	}
	status := operator.Status{States: states, Estimated: true, Sinks: sinksOf(members)}
	if status.Shards, status.Relays, err = s.shares(ctx, relayName, members); err != nil {
		return operator.Status{}, s.fail(op, err)
	}
	if status.HeldKeys, err = s.countHeldKeys(ctx); err != nil {
		return operator.Status{}, s.fail(op, err)
	}
	for _, o := range oldest {
		age := o.age.Seconds()
		status.OldestPendingSeconds = max(status.OldestPendingSeconds, age)
		status.KeyGroups = append(status.KeyGroups, operator.KeyGroup{
			Shard: o.Shard, OldestPendingSeconds: age, OldestKey: o.Key, OldestEventID: o.EventID, LastError: o.LastError,
		})
	}
	return status, nil
}

// shares counts the shards of a relay name, or of all when it is empty, and which of the members holds how many.
func (s *Store) shares(ctx context.Context, relayName string, members []member) (n operator.Shards, relays []operator.Relay, err error) {
	leases, err := s.leases(ctx, relayName)
	held := map[string]int{}
	for _, l := range leases {
		n.Total++
		switch {
		case l.Owner == "":
			n.Free++
		case l.Expired:
			n.Expired++
		default:
			n.Owned++
		}
		held[l.Owner]++
	}
	for _, m := range members {
		relays = append(relays, operator.Relay{ID: m.ID, Name: m.Name, Host: m.Host, Version: m.Version, Claim: m.Claim,
			HeartbeatSeconds: max(float64(m.AgeMillis)/1000, 0), Shards: held[m.ID]})
	}
	return n, relays, err
}

// sinksOf returns the sinks as the live ones of the members see them.
func sinksOf(members []member) []relay.SinkState {
	var reports [][]relay.SinkState
	for _, m := range members {
		if !m.Live {
			continue
		}
		var report []relay.SinkState
		for _, sink := range m.Sinks {
			report = append(report, relay.SinkState(sink))
		}
		reports = append(reports, report)
	}
	return operator.WorstSinks(reports)
}
