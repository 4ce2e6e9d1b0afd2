package cli

import (
	"context"
	"fmt"

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
	return c.printGroups(groups)
}

// deadLetters returns each dead letter that the filter selects as a group of one.
func deadLetters(ctx context.Context, store operator.Store, f operator.Filter) (letters []operator.DeadGroup, err error) {
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
		for _, r := range rows {
			letters = append(letters, operator.DeadGroup{
				AggregateType: r.AggregateType, EventType: r.EventType, Error: operator.Fingerprint(r.LastError), Count: 1,
				Oldest: r.CreatedAt, Sample: r.EventID,
			})
		}
		f.After = rows[len(rows)-1].ID
	}
	return letters, nil
}
