// Figure measures how fast one relay drains a backlog from PostgreSQL to Kafka, beside a bare loop that reads, produces
// and deletes and promises nothing: no order through a takeover, no retry, no fencing, no second process.
//
// It works on the servers of POSTRIDER_TEST_POSTGRES and POSTRIDER_TEST_KAFKA.
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 6

// options say what is drained. Both are given the same.
type options struct {
	events, size, keys, batch int
}

// place is where it is drained from and to.
type place struct {
	dsn   string
	db    *sql.DB
	kafka string
	topic string
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
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	var results []result
	for _, drain := range []func(context.Context, options, place) (result, error){
		drainBarely, drainByRelay("delete"), drainByRelay("keep"),
	} {
		r, err := onPlace(ctx, o, drain)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		results = append(results, r)
	}
	return print(o, results)
}

// onPlace drains in a database and to a topic that are there for that only.
func onPlace(ctx context.Context, o options, drain func(context.Context, options, place) (result, error)) (r result, err error) {
	p := place{kafka: os.Getenv("POSTRIDER_TEST_KAFKA"), topic: "figure" + strings.ToLower(rand.Text())}
	server := os.Getenv("POSTRIDER_TEST_POSTGRES")
	if p.kafka == "" || server == "" {
		return r, errors.New("POSTRIDER_TEST_POSTGRES and POSTRIDER_TEST_KAFKA must be set: scripts/services starts the servers")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(p.kafka))
	if err != nil {
		return r, err
	}
	defer client.Close()
	dropTopic, err := createTopic(ctx, client, p.topic)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, dropTopic()) }()

	dropDatabase, err := createDatabase(ctx, server, &p)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, dropDatabase()) }()
	if r, err = drain(ctx, o, p); err != nil {
		return r, err
	}
	r.count, err = arrived(ctx, client, p.topic)
	return r, err
}

func createTopic(ctx context.Context, client *kgo.Client, topic string) (drop func() error, err error) {
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return nil, err
	}
	return func() error {
		_, err := admin.DeleteTopic(context.WithoutCancel(ctx), topic)
		return err
	}, nil
}

// arrived counts what the topic holds.
func arrived(ctx context.Context, client *kgo.Client, topic string) (int, error) {
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	n := 0
	ends.Each(func(o kadm.ListedOffset) { n += int(o.Offset) })
	return n, ends.Error()
}

func createDatabase(ctx context.Context, server string, p *place) (drop func() error, err error) {
	admin, err := sql.Open("pgx", server)
	if err != nil {
		return nil, err
	}
	name := p.topic
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	address, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	address.Path = "/" + name
	p.dsn = address.String()
	if p.db, err = sql.Open("pgx", p.dsn); err != nil {
		return nil, err
	}
	return func() error {
		_, err := admin.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
		return errors.Join(err, p.db.Close(), admin.Close())
	}, nil
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
