// Figure measures how fast one relay drains a backlog to Kafka, beside a bare loop on PostgreSQL that reads, produces
// and deletes and promises nothing: no order through a takeover, no retry, no fencing, no second process. With -claims
// it compares the ways to share the work, on every database, with -sinks the sinks, with -fanout one sink and two, with -inbox a consumer with
// receipts and without, and with -neighbours what one sink in
// trouble does to the rates of the others.
//
// It works on the servers of POSTRIDER_TEST_POSTGRES, _MYSQL, _MARIADB, _KAFKA, _NATS, _RABBITMQ4 and _REDIS, as far as it
// needs them, and on some of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"text/tabwriter"
	"time"
)

const partitions = 6

// options say what is drained. All are given the same.
type options struct {
	events, size, keys, batch int
	waiting                   int    // see -waiting
	only                      string // see -only
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
	flag.IntVar(&o.events, "events", 0, "events to drain; 0 means 200000, with -sinks and -fanout 50000, with -inbox 100000, with -neighbours 20000")
	flag.IntVar(&o.size, "size", 500, "bytes of each payload")
	flag.IntVar(&o.keys, "keys", 1000, "keys to spread them over")
	flag.IntVar(&o.batch, "batch", 500, "events of one read")
	claims := flag.Bool("claims", false, "compare leases of shards and claims of rows, on every database")
	sinks := flag.Bool("sinks", false, "compare the sinks, from PostgreSQL with claim: shard and on_published: delete")
	fanout := flag.Bool("fanout", false, "compare routes to one sink and to two, on every database")
	receipts := flag.Bool("inbox", false, "compare a consumer with an inbox and without, on PostgreSQL and Kafka")
	neighbours := flag.Bool("neighbours", false, "compare the rates of sinks while one of them is in trouble")
	flag.IntVar(&o.waiting, "waiting", 0, "with -neighbours: events that wait for the sink in trouble, before all others")
	flag.StringVar(&o.only, "only", "", "with -neighbours: the troubles that begin with this, such as \"nats frozen\"")
	on := flag.String("on", postgres.name, "with -neighbours: the database, PostgreSQL, MySQL or MariaDB")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *claims:
		err = run(ctx, o.orElse(200_000), everywhere())
	case *sinks:
		err = run(ctx, o.orElse(50_000), toEverySink)
	case *fanout:
		err = run(ctx, o.orElse(50_000), toOneAndTwo())
	case *receipts:
		err = run(ctx, o.orElse(100_000), onceAndWithout)
	case *neighbours:
		err = besideTrouble(ctx, o.orElse(20_000), *on)
	default:
		err = run(ctx, o.orElse(200_000), beside)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// orElse has the number of events when none was asked for.
func (o options) orElse(events int) options {
	if o.events == 0 {
		o.events = events
	}
	return o
}

// drain is one measurement.
type drain struct {
	name string
	on   database
	to   newTarget
	by   func(context.Context, options, place) (result, error)
}

// beside compares the relay with the bare loop.
var beside = []drain{
	{"bare loop", postgres, toKafka, drainBarely},
	{"one relay, delete", postgres, toKafka, byRelay("shard", "delete")},
	{"one relay, keep", postgres, toKafka, byRelay("shard", "keep")},
}

// toEverySink compares the sinks.
var toEverySink = []drain{
	{"Kafka", postgres, toKafka, byRelay("shard", "delete")},
	{"NATS JetStream, file", postgres, toNATS, byRelay("shard", "delete")},
	{"RabbitMQ, classic queue", postgres, toRabbitMQ("classic"), byRelay("shard", "delete")},
	{"RabbitMQ, quorum queue", postgres, toRabbitMQ("quorum"), byRelay("shard", "delete")},
	{"RabbitMQ, stream", postgres, toRabbitMQ("stream"), byRelay("shard", "delete")},
	{"Redis Streams, everysec", postgres, toRedis("everysec"), byRelay("shard", "delete")},
	{"Redis Streams, always", postgres, toRedis("always"), byRelay("shard", "delete")},
	{"webhook", postgres, toWebhook, byRelay("shard", "delete")},
}

// everywhere compares the databases and the ways to share the work.
func everywhere() (drains []drain) {
	for _, d := range []database{postgres, mysql, mariadb} {
		for _, claim := range []string{"shard", "row"} {
			for _, published := range []string{"keep", "delete"} {
				drains = append(drains, drain{fmt.Sprintf("%s, claim: %s, %s", d.name, claim, published), d, toKafka, byRelay(claim, published)})
			}
		}
	}
	return drains
}

// toOneAndTwo compares the numbers of sinks that an event goes to.
func toOneAndTwo() (drains []drain) {
	for _, d := range []database{postgres, mysql, mariadb} {
		drains = append(drains,
			drain{d.name + ", to one sink", d, toKafka, byRelay("shard", "delete")},
			drain{d.name + ", to two", d, toKafka, byFanOut})
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
	return report(o, results)
}

// report compares with the first result.
func report(o options, results []result) error {
	fmt.Printf("%d events of %d bytes, %d keys, batches of %d, %d partitions; %d CPUs, %s %s/%s\n\n",
		o.events, o.size, o.keys, o.batch, partitions, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tseconds\tevents/s\tratio\tpeak RSS\tmessages\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.1f\t%.0f\t%.2f\t%s\t%d\t\n", r.name, r.took.Seconds(),
			float64(o.events)/r.took.Seconds(), results[0].took.Seconds()/r.took.Seconds(), memory(r.peak), r.count)
	}
	return table.Flush()
}

func memory(peak int) string {
	if peak == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%d MiB", peak>>20)
}
