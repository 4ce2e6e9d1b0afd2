package outboxtest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider/inbox"
)

// Bounds of Idempotent.
const (
	copies       = 8  // of a message that are delivered at the same time
	rounds       = 10 // in which they are, each on data of its own
	redeliveries = 10 // of a message that lost a race with its copies
)

// Consumer is what Idempotent delivers messages to, and what it looks at.
type Consumer struct {
	// Deliver handles one message as the consumer does when the broker delivers it, and returns an error when it is to
	// be delivered again. It is called concurrently.
	Deliver func(ctx context.Context, m inbox.Message) error

	// Snapshot tells everything that messages have an effect on, as text with a line for each fact; see Rows. It must be the same
	// whenever the same effects took place: without times, generated ids and receipts.
	Snapshot func(ctx context.Context) (string, error)
}

// Idempotent fails the test unless delivering the messages more than once leaves what delivering them once does. They are
// delivered in their order
//
//   - each twice in a row,
//   - all of them, and then all again,
//   - each followed by all that came before it,
//   - each in 8 copies at the same time, 10 times over. A copy that fails is delivered again afterwards, as a broker does.
//
// Otherwise a delivery may not fail. setup makes a Consumer on data of its own, such as a new database, for each of these
// runs; t.Cleanup in it ends when the whole test does. The last run finds races by chance: run it with -race and a real
// database, on which the copies meet. It says nothing about messages that change places, or are lost.
func Idempotent(t testing.TB, setup func(t testing.TB) Consumer, messages ...inbox.Message) {
	t.Helper()
	c := setup(t)
	empty := c.snapshot(t)
	once := deliverAll(t, c, messages)
	if once == empty {
		t.Fatalf("delivering %d messages changed nothing that Snapshot tells: it cannot show an effect that happens twice", len(messages))
	}
	if again := deliverAll(t, setup(t), messages); again != once {
		t.Fatalf("Snapshot differs between two runs that delivered everything once: leave out of it what differs by itself, "+
			"such as times and generated ids:\n%s", lineDiff(once, again))
	}
	for _, run := range []struct {
		name  string
		order []inbox.Message
	}{
		{"each twice in a row", twice(messages)},
		{"all of them, and then all again", slices.Concat(messages, messages)},
		{"each followed by all before it", between(messages)},
	} {
		if got := deliverAll(t, setup(t), run.order); got != once {
			t.Errorf("not idempotent: delivering %s left another state than delivering once "+
				"(- is missing, + is too much):\n%s", run.name, lineDiff(once, got))
		}
	}
	for range rounds {
		if got := deliverAtOnce(t, setup(t), messages); got != once {
			t.Fatalf("not idempotent: delivering each in %d copies at the same time left another state than delivering once "+
				"(- is missing, + is too much):\n%s", copies, lineDiff(once, got))
		}
	}
}

func twice(messages []inbox.Message) (all []inbox.Message) {
	for _, m := range messages {
		all = append(all, m, m)
	}
	return all
}

func between(messages []inbox.Message) (all []inbox.Message) {
	for i, m := range messages {
		all = append(all, m)
		all = append(all, messages[:i]...)
	}
	return all
}

func (c Consumer) snapshot(t testing.TB) string {
	t.Helper()
	text, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatalf("Snapshot: %v", err)
	}
	return text
}

func deliverAll(t testing.TB, c Consumer, messages []inbox.Message) string {
	t.Helper()
	for i, m := range messages {
		if err := c.Deliver(t.Context(), m); err != nil {
			t.Fatalf("delivery %d of %d, of %s, failed: a broker would deliver it again and again: %v", i+1, len(messages), m, err)
		}
	}
	return c.snapshot(t)
}

func deliverAtOnce(t testing.TB, c Consumer, messages []inbox.Message) string {
	t.Helper()
	for _, m := range messages {
		failed := 0
		var mu sync.Mutex
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range copies {
			wg.Go(func() {
				<-start
				if c.Deliver(t.Context(), m) != nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			})
		}
		close(start)
		wg.Wait()
		for range failed {
			redeliver(t, c, m)
		}
	}
	return c.snapshot(t)
}

func redeliver(t testing.TB, c Consumer, m inbox.Message) {
	t.Helper()
	var err error
	for range redeliveries {
		if err = c.Deliver(t.Context(), m); err == nil {
			return
		}
	}
	t.Fatalf("%s was delivered in %d copies at the same time, one of which failed %d times afterwards: %v", m, copies, redeliveries, err)
}

// lineDiff leaves out the lines that both begin and end with.
func lineDiff(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var lines []string
	for _, line := range a {
		lines = append(lines, "- "+line)
	}
	for _, line := range b {
		lines = append(lines, "+ "+line)
	}
	return strings.Join(lines, "\n")
}

// Rows returns what query finds as text for a Snapshot: a line for each row, with its columns by name. The query must
// have an ORDER BY, and blocks as long as the database does.
func Rows(ctx context.Context, q Querier, query string, args ...any) (string, error) {
	text, err := rowsText(ctx, q, query, args)
	if err != nil {
		return "", fmt.Errorf("%s: %w", query, err)
	}
	return text, nil
}

func rowsText(ctx context.Context, q Querier, query string, args []any) (string, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var lines []string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		places := make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			return "", err
		}
		parts := make([]string, len(columns))
		for i, v := range values {
			parts[i] = columns[i] + "=NULL"
			if v.Valid {
				parts[i] = fmt.Sprintf("%s=%q", columns[i], v.String)
			}
		}
		lines = append(lines, strings.Join(parts, " "))
	}
	return strings.Join(lines, "\n"), rows.Err()
}
