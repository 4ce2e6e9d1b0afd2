package cli

import (
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/wiring"
	"github.com/postrider/postrider/operator"
)

// filterFlags choose events.
type filterFlags struct {
	state, sink, aggregateType, key, eventType, errorText, after, to string
	limit                                                            int
	all                                                              bool
}

// selects adds the flags that choose events.
func (f *filterFlags) selects(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.aggregateType, "aggregate-type", "", "only events of this aggregate `type`")
	flags.StringVar(&f.key, "key", "", "only events of this `key` (aggregate id)")
	flags.StringVar(&f.eventType, "event-type", "", "only events of this event `type`")
	flags.StringVar(&f.errorText, "error", "", "only events whose last error has this `text` in it")
	flags.StringVar(&f.after, "after", "", "only events behind this outbox `id`")
	flags.IntVar(&f.limit, "limit", 0, "at most this many events")
	selectsDestination(cmd, &f.to)
}

const inDestination = "in the outbox of this `sink`, for events that go to several sinks"

// selectsDestination adds --to.
func selectsDestination(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "to", "", inDestination)
}

// storeOf returns the outbox that --to names.
func storeOf(o *wiring.Outbox, to string) (wiring.Store, error) {
	store, err := o.To(to)
	if err != nil {
		return nil, usageError{fmt.Errorf("--to: %w", err)}
	}
	return store, nil
}

// jobsOf returns the jobs over the dead letters of the outbox that --to names.
func jobsOf(o *wiring.Outbox, to string) (operator.JobStore, error) {
	jobs, err := o.JobsTo(to)
	if err != nil {
		return nil, usageError{fmt.Errorf("--to: %w", err)}
	}
	return jobs, nil
}

// selectsStates adds --state.
func (f *filterFlags) selectsStates(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.state, "state", "", "only events in this `state`: "+strings.ToLower(stateWords(", ")))
}

// selectsSinks adds --sink.
func (f *filterFlags) selectsSinks(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.sink, "sink", "", "only events that became DEAD at this `sink`")
}

// asksForAll adds --all, without which nothing is changed unless events are chosen.
func (f *filterFlags) asksForAll(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all", false, "take every event; needed when no event is chosen otherwise")
}

func stateWords(separator string) string {
	var words []string
	for _, s := range postrider.States() {
		words = append(words, string(s))
	}
	return strings.Join(words, separator)
}

// filter returns what the flags and the ids choose.
func (f *filterFlags) filter(ids []string) (operator.Filter, error) {
	state := postrider.State(strings.ToUpper(f.state))
	if state != "" && !slices.Contains(postrider.States(), state) {
		return operator.Filter{}, usageError{fmt.Errorf("--state %q is none of %s", f.state, stateWords(", "))}
	}
	if f.limit < 0 {
		return operator.Filter{}, usageError{fmt.Errorf("--limit %d is below 0", f.limit)}
	}
	return operator.Filter{
		IDs: ids, State: state, Sink: f.sink, AggregateType: f.aggregateType, AggregateID: f.key, EventType: f.eventType,
		ErrorContains: f.errorText, Limit: f.limit, After: f.after,
	}, nil
}

// target returns what is to be changed. It refuses to take everything without being told to.
func (f *filterFlags) target(ids []string) (operator.Filter, error) {
	chosen := len(ids) > 0 || f.state+f.sink+f.aggregateType+f.key+f.eventType+f.errorText+f.after != ""
	switch {
	case !chosen && !f.all:
		return operator.Filter{}, usageError{errors.New("no events are chosen: name ids, use a filter such as --event-type, or say --all")}
	case chosen && f.all:
		return operator.Filter{}, usageError{errors.New("--all contradicts ids and filters: use one of them")}
	}
	return f.filter(ids)
}

// actionFlags say who acts and why.
type actionFlags struct{ who, reason string }

// add adds the flags. what is that with which they are kept.
func (a *actionFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&a.who, "who", "", "`name` of who does this, kept with the "+what+" (default the user of the operating system)")
	cmd.Flags().StringVar(&a.reason, "reason", "", "`text` that says why, kept with the "+what)
}

func (a *actionFlags) action() operator.Action {
	who := a.who
	if who == "" {
		who = "unknown"
		if u, err := user.Current(); err == nil {
			who = u.Username
		}
	}
	return operator.Action{Who: who, Reason: a.reason}
}
