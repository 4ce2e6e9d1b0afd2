// Figure measures how fast one relay drains a backlog to Kafka, beside a bare loop on PostgreSQL that reads, produces
// and deletes and promises nothing: no order through a takeover, no retry, no fencing, no second process. With -claims
// it compares the ways to share the work, on every database.
//
// It works on the servers of POSTRIDER_TEST_POSTGRES, _MYSQL, _MARIADB and _KAFKA.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"text/tabwriter"
	"time"
)

const partitions = 6

// options say what is drained. Both are given the same.
type options struct {
	events, size, keys, batch int
}

// result is what one drain took. peak is in bytes, 0 when it was not measured.
type result struct {
	name  string
	took  time.Duration
	peak  int
	count int
}

func main() {
	var o options
	flag.IntVar(&o.events, "events", 200_000, "events to drain")
	flag.IntVar(&o.size, "size", 500, "bytes of each payload")
	flag.IntVar(&o.keys, "keys", 1000, "keys to spread them over")
	flag.IntVar(&o.batch, "batch", 500, "events of one read")
	claims := flag.Bool("claims", false, "compare leases of shards and claims of rows, on every database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	drains := beside
	if *claims {
		drains = everywhere()
	}
	if err := run(ctx, o, drains); err != nil {
		log.Fatal(err)
	}
}

// drain is one measurement.
type drain struct {
	name string
	on   database
	by   func(context.Context, options, place) (result, error)
}

// beside compares the relay with the bare loop.
var beside = []drain{
	{"bare loop", postgres, drainBarely},
	{"one relay, delete", postgres, byRelay("shard", "delete")},
	{"one relay, keep", postgres, byRelay("shard", "keep")},
}

// everywhere compares the databases and the ways to share the work.
func everywhere() (drains []drain) {
	for _, d := range []database{postgres, mysql, mariadb} {
		for _, claim := range []string{"shard", "row"} {
			for _, published := range []string{"keep", "delete"} {
				drains = append(drains, drain{fmt.Sprintf("%s, claim: %s, %s", d.name, claim, published), d, byRelay(claim, published)})
			}
		}
	}
	return drains
}

func run(ctx context.Context, o options, drains []drain) error {
	var results []result
	for _, d := range drains {
		r, err := onPlace(ctx, o, d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		r.name = d.name
		results = append(results, r)
	}
	return print(o, results)
}

// print compares with the first result.
func print(o options, results []result) error {
	fmt.Printf("%d events of %d bytes, %d keys, batches of %d, %d partitions; %d CPUs, %s %s/%s\n\n",
		o.events, o.size, o.keys, o.batch, partitions, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tseconds\tevents/s\tratio\tpeak RSS\tmessages\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.1f\t%.0f\t%.2f\t%d MiB\t%d\t\n", r.name, r.took.Seconds(),
			float64(o.events)/r.took.Seconds(), results[0].took.Seconds()/r.took.Seconds(), r.peak>>20, r.count)
	}
	return table.Flush()
}
