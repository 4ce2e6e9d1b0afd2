package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/destination"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// besideTrouble measures the rates of sinks of one relay while one of them is in trouble, and prints them as parts of
// their rates without.
func besideTrouble(ctx context.Context, o options, on string) error {
	for _, d := range []database{postgres, mysql, mariadb} {
		if d.name == on {
			return hosted(ctx, func(t *host) error { return newNeighbourhood(t, o, d).measure(t) })
		}
	}
	return fmt.Errorf("-on %s: there are PostgreSQL, MySQL and MariaDB", on)
}

// neighbourhood is a relay with a sink of every type.
type neighbourhood struct {
	options
	place
	sinks     []destination.Destination
	outbox    *postrider.Outbox
	relay     *relay.Relay
	delivered *counts
}

func newNeighbourhood(t *host, o options, d database) *neighbourhood {
	n := &neighbourhood{options: o, place: newPlace(t, d), sinks: destination.All(t), delivered: &counts{}}
	store, err := sqlstore.Open(n.db, d.dialect, sqlstore.Config{DeletePublished: true})
	t.must(err)
	t.must(store.Init(t.Context()))
	n.outbox, err = postrider.New(postrider.Config{Dialect: d.outbox})
	t.must(err)
	cfg := relay.Config{
		Store: store, Name: "figure", Batch: o.batch, Hooks: relay.Hooks{Delivered: func(sink string, _ time.Duration) { n.delivered.add(sink) }},
	}
	for _, s := range n.sinks {
		cfg.Sinks = append(cfg.Sinks, relay.NamedSink{Name: s.Name, Type: s.Name, Sink: s.Sink})
		cfg.Routes = append(cfg.Routes, relay.Route{AggregateType: s.Name, Sink: s.Name, Topic: s.Topic})
	}
	n.relay, err = relay.New(cfg)
	t.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.relay.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		t.must(<-ended)
	})
	return n
}

// rates are by sink: events a second, or parts of another rate.
type rates map[string]float64

// row is what a trouble of a sink makes of the rates of the others.
type row struct {
	sink, trouble string
	parts         rates
}

// measure compares each trouble with drains that have none.
func (n *neighbourhood) measure(t *host) error {
	n.drain(t, "", destination.Trouble{}) // the first one finds nothing prepared
	var normal []rates
	var rows []row
	for _, s := range n.sinks {
		for _, trouble := range s.Troubles {
			if strings.HasPrefix(s.Name+" "+trouble.Name, n.only) {
				without, parts := n.compare(t, s.Name, trouble)
				normal, rows = append(normal, without...), append(rows, row{s.Name, trouble.Name, median(parts)})
			}
		}
	}
	return n.print(median(normal), rows)
}

// runs is how often a trouble is compared: a drain takes about a second, and one checkpoint of the database is seen in it.
const runs = 3

// compare has a drain without the trouble right before each one with it, because the load of a machine drifts.
func (n *neighbourhood) compare(t *host, failing string, trouble destination.Trouble) (normal, parts []rates) {
	for range runs {
		without := n.drain(t, "", destination.Trouble{})
		with := n.drain(t, failing, trouble)
		for name := range with {
			with[name] /= without[name]
		}
		normal, parts = append(normal, without), append(parts, with)
	}
	return normal, parts
}

func median(all []rates) rates {
	bySink := make(map[string][]float64)
	for _, r := range all {
		for sink, rate := range r {
			bySink[sink] = append(bySink[sink], rate)
		}
	}
	m := make(rates)
	for sink, measured := range bySink {
		slices.Sort(measured)
		m[sink] = measured[len(measured)/2]
	}
	return m
}

// print shows the medians.
func (n *neighbourhood) print(normal rates, rows []row) error {
	fmt.Printf("medians of %d: %d events of %d bytes and %d keys for %d sinks of one relay, from %s, and %d before them for the sink in trouble; %d CPUs, %s %s/%s\n\n",
		runs, n.events, n.size, n.keys, len(n.sinks), n.database.name, n.waiting, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	heads, rate := "\t", "no trouble, events/s\t"
	for _, s := range n.sinks {
		heads += s.Name + "\t"
		rate += fmt.Sprintf("%.0f\t", normal[s.Name])
	}
	fmt.Fprintln(table, heads)
	fmt.Fprintln(table, rate)
	for _, r := range rows {
		line := r.sink + " " + r.trouble + "\t"
		for _, s := range n.sinks {
			if s.Name == r.sink {
				line += "-\t"
			} else {
				line += fmt.Sprintf("%.2f\t", r.parts[s.Name])
			}
		}
		fmt.Fprintln(table, line)
	}
	return table.Flush()
}

// noticed is how long a sink is in trouble before the others get their events, when some wait for it.
const noticed = 3 * time.Second

// drain adds events for all sinks at once and returns at which rates they are delivered. It returns when a sink in trouble,
// which is so until the others have theirs, has delivered its own as well.
func (n *neighbourhood) drain(t *host, failing string, trouble destination.Trouble) rates {
	want := make(map[string]int)
	for _, s := range n.sinks {
		want[s.Name] = n.events / len(n.sinks)
	}
	more := map[string]int{failing: n.waiting}
	if failing != "" {
		trouble.Begin(t)
	}
	if failing != "" && n.waiting > 0 {
		n.add(t, more)
		sleep(t, noticed)
	}
	n.delivered.start(want, more)
	n.add(t, want)
	start := time.Now()
	n.relay.Hint()
	for _, s := range n.sinks {
		if s.Name != failing {
			n.delivered.await(t, s.Name)
		}
	}
	if failing != "" {
		trouble.End(t)
		n.delivered.await(t, failing)
	}
	r := make(rates)
	for name, count := range want {
		r[name] = float64(count) / n.delivered.when(name).Sub(start).Seconds()
	}
	return r
}

func sleep(t *host, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// add adds so many events for each sink, in turn, in one transaction. A key belongs to one sink, because an
// event that failed holds up its key everywhere.
func (n *neighbourhood) add(t *host, counts map[string]int) {
	payload := []byte(`"` + strings.Repeat("x", max(0, n.size-2)) + `"`)
	var events []postrider.Event
	for i, added := 0, -1; added < len(events); i++ {
		added = len(events)
		for _, s := range n.sinks {
			if i < counts[s.Name] {
				events = append(events, postrider.Event{AggregateType: s.Name, AggregateID: fmt.Sprint(s.Name, "-", i%n.keys), Type: "Measured", Payload: payload})
			}
		}
	}
	tx, err := n.db.BeginTx(t.Context(), nil)
	t.must(err)
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	for chunk := range slices.Chunk(events, 500) {
		_, err := n.outbox.Add(t.Context(), tx, chunk...)
		t.must(err)
	}
	t.must(tx.Commit())
}

// counts tells when sinks have delivered what is wanted of them.
type counts struct {
	mu      sync.Mutex
	missing map[string]int
	done    map[string]chan struct{}
	at      map[string]time.Time
}

// start begins to count to the sums of what is wanted.
func (c *counts) start(want ...map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing, c.done, c.at = make(map[string]int), make(map[string]chan struct{}), make(map[string]time.Time)
	for _, w := range want {
		for name, n := range w {
			c.missing[name] += n
			c.done[name] = make(chan struct{})
		}
	}
}

func (c *counts) add(sink string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missing[sink]--; c.missing[sink] == 0 {
		c.at[sink] = time.Now()
		close(c.done[sink])
	}
}

func (c *counts) await(t *host, sink string) {
	c.mu.Lock()
	done := c.done[sink]
	c.mu.Unlock()
	select {
	case <-done:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

func (c *counts) when(sink string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[sink]
}
