package cli

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
)

func (c *command) status() *cobra.Command {
	return c.printsJSON(&cobra.Command{
		Use:   "status",
		Short: "Shows what waits and how long, and the relays, shards and sinks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withOutbox(func(cfg *config.Config, o *wiring.Outbox) error {
				ctx, cancel := looking(cmd)
				defer cancel()
				status, err := o.Status(ctx, cfg.Relay.Name)
				if err != nil {
					return err
				}
				jobs, err := o.UnfinishedJobs(ctx)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(statusJSON{withLists(status), append([]operator.Job{}, jobs...)})
				}
				return c.printStatus(status, jobs, cfg.Relay)
			})
		},
	})
}

// statusJSON is the status with the jobs that have not ended.
type statusJSON struct {
	operator.Status
	Jobs []operator.Job `json:"jobs"`
}

// withLists makes lists without elements show as [].
func withLists(s operator.Status) operator.Status {
	s.Relays = append([]operator.Relay{}, s.Relays...)
	s.Sinks = append([]relay.SinkState{}, s.Sinks...)
	s.KeyGroups = append([]operator.KeyGroup{}, s.KeyGroups...)
	s.Destinations = append([]operator.Destination{}, s.Destinations...)
	for i := range s.Destinations {
		s.Destinations[i].KeyGroups = append([]operator.KeyGroup{}, s.Destinations[i].KeyGroups...)
	}
	return s
}

// countText says what of a count is an estimate: published events are not counted, and the others only up to a limit.
func countText(state postrider.State, n int64, estimated bool) string {
	text := strconv.FormatInt(n, 10)
	switch {
	case state == postrider.StatePublished && estimated:
		return "about " + text
	case state != postrider.StatePublished && n >= relay.PendingCap:
		return text + " or more"
	}
	return text
}

func (c *command) printStatus(s operator.Status, jobs []operator.Job, r config.Relay) error {
	t := newTable(c.stdout)
	for _, state := range postrider.States() {
		if n := s.States[state]; n > 0 || state != postrider.StateProcessing {
			t.row(string(state), countText(state, n, s.Estimated))
		}
	}
	if s.HeldKeys > 0 {
		t.row("keys on hold", fmt.Sprintf("%d: postrider dead list shows why; redrive or discard what holds them", s.HeldKeys))
	}
	t.row("oldest unpublished", human.Seconds(s.OldestPendingSeconds))
	if r.Claim == config.ClaimShard {
		t.row("shards", fmt.Sprintf("%d: %d owned, %d free, %d expired", s.Shards.Total, s.Shards.Owned, s.Shards.Free, s.Shards.Expired))
	}
	for _, j := range jobs {
		t.row("job "+reference(j), human.Job(j))
	}
	if err := t.flush(); err != nil {
		return err
	}
	return cmp.Or(c.printDestinations(s), c.printRelays(s, r.Name), c.printSinks(s), c.printKeyGroups(s))
}

func (c *command) printDestinations(s operator.Status) error {
	if len(s.Destinations) == 0 {
		return nil
	}
	fmt.Fprintln(c.stdout)
	t := newTable(c.stdout, "TO", "OUTBOX", "PENDING", "DEAD", "OLDEST", "OLDEST EVENT", "LAST ERROR")
	for _, d := range s.Destinations {
		var oldest operator.KeyGroup
		if groups := human.Oldest(d.KeyGroups, 1); len(groups) > 0 {
			oldest = groups[0]
		}
		t.row(d.Sink, d.Table,
			countText(postrider.StatePending, d.States[postrider.StatePending]+d.States[postrider.StateProcessing], d.Estimated),
			countText(postrider.StateDead, d.States[postrider.StateDead], d.Estimated),
			human.Seconds(d.OldestPendingSeconds), oldest.OldestEventID, short(oldest.LastError))
	}
	return t.flush()
}

func (c *command) printRelays(s operator.Status, name string) error {
	fmt.Fprintln(c.stdout)
	if len(s.Relays) == 0 {
		_, err := fmt.Fprintf(c.stdout, "no relay named %q is at work: start one with postrider run\n", name)
		return err
	}
	t := newTable(c.stdout, "RELAY", "HOST", "VERSION", "HEARTBEAT", "SHARDS")
	for _, r := range s.Relays {
		t.row(r.ID, r.Host, r.Version, human.Seconds(r.HeartbeatSeconds)+" ago", strconv.Itoa(r.Shards))
	}
	return t.flush()
}

func (c *command) printSinks(s operator.Status) error {
	if len(s.Sinks) == 0 {
		return nil
	}
	fmt.Fprintln(c.stdout)
	t := newTable(c.stdout, "SINK", "TYPE", "CIRCUIT", "SINCE", "LAST ERROR")
	for _, k := range s.Sinks {
		t.row(k.Name, k.Type, k.Circuit, human.UTC(k.Since), k.LastError)
	}
	return t.flush()
}

const longestWaits = 10

func (c *command) printKeyGroups(s operator.Status) error {
	if len(s.KeyGroups) == 0 {
		return nil
	}
	fmt.Fprintf(c.stdout, "\nevents wait in %d shards; the longest wait\n", len(s.KeyGroups))
	t := newTable(c.stdout, "SHARD", "OLDEST", "KEY", "EVENT", "LAST ERROR")
	for _, g := range human.Oldest(s.KeyGroups, longestWaits) {
		t.row(strconv.Itoa(g.Shard), human.Seconds(g.OldestPendingSeconds), g.OldestKey, g.OldestEventID, short(g.LastError))
	}
	return t.flush()
}
