package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
	"github.com/postrider/postrider/operator"
)

func (c *command) trace() *cobra.Command {
	return c.showsEvent(c.printTrace, &cobra.Command{
		Use:   "trace EVENT",
		Short: "Tells where an event is: added, published, applied; EVENT is an event id or an outbox id",
	})
}

// printTrace tells the event's way as a list of what happened to it.
func (c *command) printTrace(f foundEvent) error {
	r := f.row
	fmt.Fprintf(c.stdout, "event %s (%s %s, %s), outbox id %s\n\n",
		r.EventID, plain(r.AggregateType), plain(r.AggregateID), plain(r.EventType), r.ID)
	t := newTable(c.stdout, "AT", "WHAT", "DETAILS")
	traceRow(t, "", "added", r, f.attempts)
	for _, at := range f.copies {
		traceRow(t, "to "+at.Sink+": ", "handed over", at.Row, at.Attempts)
	}
	for _, receipt := range f.receipts {
		t.row(human.UTC(receipt.At), "applied", "by consumer "+receipt.Consumer)
	}
	return t.flush()
}

// traceRow tells the way of one row. place stands before each step.
func traceRow(t table, place, began string, r operator.Row, attempts []operator.Attempt) {
	t.row(human.UTC(r.CreatedAt), place+began, "")
	for _, a := range attempts {
		t.row(human.UTC(a.At), place+a.Outcome, a.Error)
	}
	switch {
	case r.PublishedAt != nil:
		t.row(human.UTC(*r.PublishedAt), place+"published", r.PublishedTo)
	case r.Status == postrider.StatePending:
		t.row(human.UTC(r.NextAttemptAt), place+"due", pendingDetails(r.RetryCount, r.LastError))
	default:
		t.row("", place+"is "+string(r.Status), r.LastError)
	}
}

// pendingDetails tells why an event has not left yet, as far as its row does.
func pendingDetails(retryCount int, lastError string) string {
	text := "PENDING, " + strconv.Itoa(retryCount) + " attempts failed"
	if lastError != "" {
		text += ": " + lastError
	}
	return text
}
