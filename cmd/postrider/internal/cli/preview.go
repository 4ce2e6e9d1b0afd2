package cli

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/operator"
)

// previewPage is how many events a preview reads at a time.
const previewPage = 1000

// preview tells what a job over the filter would take. It changes nothing.
func (c *command) preview(ctx context.Context, store operator.Store, work deadWork, f operator.Filter) error {
	letters, err := deadLetters(ctx, store, f)
	if err != nil {
		return err
	}
	groups := operator.Group(letters)
	if c.json {
		return c.printJSON(map[string]any{"events": len(letters), "groups": append([]operator.DeadGroup{}, groups...)})
	}
	fmt.Fprintf(c.stdout, "%s would be %s\n", human.Events(len(letters)), work.done)
	if len(groups) == 0 {
		return nil
	}
	fmt.Fprintln(c.stdout)
	return c.printGroups(groups, false)
}

// deadLetters returns each dead letter that the filter selects as a group of one.
func deadLetters(ctx context.Context, store operator.Store, f operator.Filter) (letters []operator.DeadGroup, err error) {
	sinks, err := deadSinks(ctx, store)
	if err != nil {
		return nil, err
	}
	f.State = postrider.StateDead
	for most := f.Limit; most == 0 || len(letters) < most; {
		f.Limit = previewPage
		if most > 0 {
			f.Limit = min(previewPage, most-len(letters))
		}
		rows, err := store.Events(ctx, f)
		if err != nil || len(rows) == 0 {
			return letters, err
		}
		at, err := sinksOf(ctx, store, rows, sinks)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			letter := operator.DeadGroup{
				Sink: at[r.ID], AggregateType: r.AggregateType, EventType: r.EventType, Error: operator.Fingerprint(r.LastError),
				Count: 1, Oldest: r.CreatedAt, Sample: r.EventID,
			}
			if r.Holds {
				letter.Holding = 1
			}
			letters = append(letters, letter)
		}
		f.After = rows[len(rows)-1].ID
	}
	return letters, nil
}

// deadSinks lists the sinks at which events became DEAD.
func deadSinks(ctx context.Context, store operator.Store) (sinks []string, err error) {
	groups, err := store.DeadGroups(ctx, math.MaxInt32)
	for _, g := range groups {
		if g.Sink != "" && !slices.Contains(sinks, g.Sink) {
			sinks = append(sinks, g.Sink)
		}
	}
	return sinks, err
}

// sinksOf finds out at which of the sinks each row became DEAD. A row does not tell.
func sinksOf(ctx context.Context, store operator.Store, rows []operator.Row, sinks []string) (map[string]string, error) {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	at := make(map[string]string, len(rows))
	for _, sink := range sinks {
		found, err := store.Events(ctx, operator.Filter{IDs: ids, Sink: sink, Limit: len(ids)})
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			at[r.ID] = sink
		}
	}
	return at, nil
}
