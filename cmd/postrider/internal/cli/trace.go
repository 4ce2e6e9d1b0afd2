package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/human"
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
	t.row(human.UTC(r.CreatedAt), "added", "")
	for _, a := range f.attempts {
		t.row(human.UTC(a.At), a.Outcome, a.Error)
	}
	switch {
	case r.PublishedAt != nil:
		t.row(human.UTC(*r.PublishedAt), "published", r.PublishedTo)
	case r.Status == postrider.StatePending:
		t.row(human.UTC(r.NextAttemptAt), "due", pendingDetails(r.RetryCount, r.LastError))
	default:
		t.row("", "is "+string(r.Status), r.LastError)
	}
	for _, receipt := range f.receipts {
		t.row(human.UTC(receipt.At), "applied", "by consumer "+receipt.Consumer)
	}
	return t.flush()
}

// pendingDetails tells why an event has not left yet, as far as its row does.
func pendingDetails(retryCount int, lastError string) string {
	text := "PENDING, " + strconv.Itoa(retryCount) + " attempts failed"
	if lastError != "" {
		text += ": " + lastError
	}
	return text
}
