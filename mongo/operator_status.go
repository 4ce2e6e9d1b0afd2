package mongo

import (
	"context"
	"slices"
	"strings"

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
	status := operator.Status{States: states, Estimated: true, Sinks: worstSinks(members)}
	if status.Shards, status.Relays, err = s.shares(ctx, relayName, members); err != nil {
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
		relays = append(relays, operator.Relay{ID: m.ID, Name: m.Name, Host: m.Host, Version: m.Version,
			HeartbeatSeconds: max(float64(m.AgeMillis)/1000, 0), Shards: held[m.ID]})
	}
	return n, relays, err
}

// circuits lists the states of a circuit from the best to the worst.
var circuits = []string{"closed", "half-open", "open"}

// worstSinks returns each sink, by name, as the live relay sees it that sees it worst.
func worstSinks(members []member) []relay.SinkState {
	var worst []relay.SinkState
	for _, r := range members {
		if !r.Live {
			continue
		}
		for _, sink := range r.Sinks {
			i := slices.IndexFunc(worst, func(w relay.SinkState) bool { return w.Name == sink.Name })
			switch {
			case i < 0:
				worst = append(worst, relay.SinkState(sink))
			case slices.Index(circuits, sink.Circuit) > slices.Index(circuits, worst[i].Circuit):
				worst[i] = relay.SinkState(sink)
			}
		}
	}
	slices.SortFunc(worst, func(a, b relay.SinkState) int { return strings.Compare(a.Name, b.Name) })
	return worst
}
