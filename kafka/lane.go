package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	patience = 10 * time.Second      // how long a wave may wait for a broker that takes it
	freshFor = 10 * time.Millisecond // how long a connection is trusted after its last answer
)

var errPatience = fmt.Errorf("not taken within %s", patience)

// lane is a client that sends one wave at a time. It belongs to one goroutine at a time.
type lane struct {
	config *Config
	extra  []kgo.Opt
	client *kgo.Client // nil before the first wave, and after a failure that the client does not get over
	used   time.Time   // when the last wave came back

	mu      sync.Mutex
	wave    []*flight
	trouble error // the last connection error of the wave
}

// send sends a wave and returns when each record was answered or given up. A record that no broker can have is given
// up when ctx ends or patience does; one that a broker may have is repeated until the broker tells.
func (l *lane) send(ctx context.Context, wave []*flight) error {
	if err := l.open(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	l.begin(wave)
	if time.Since(l.used) > freshFor {
		l.probe(ctx, wave)
	}

	// What lies in the client when it is flushed becomes one record batch per partition, so everything must lie there
	// before. Records of topics that the client does not know yet would come too late.
	l.learn(ctx, wave)
	var answered sync.WaitGroup
	for _, f := range wave {
		f.launch(ctx, l.leader(f.partition))
		answered.Add(len(f.records))
		for n, record := range f.records {
			l.client.Produce(f, record, func(_ *kgo.Record, err error) {
				f.errs[n] = err
				answered.Done()
			})
		}
	}
	_ = l.client.Flush(context.Background()) // fails only if its context ends
	answered.Wait()
	l.used = time.Now()

	l.explain(ctx, wave)
	return nil
}

func (l *lane) open() error {
	if l.client != nil {
		return nil
	}
	client, err := kgo.NewClient(slices.Concat(l.config.clientOptions(), l.config.producerOptions(), l.extra, []kgo.Opt{kgo.WithHooks(l)})...)
	l.client = client
	return err
}

// probe makes the client drop connections that have died since they were used. Records written to one would have to
// count as possibly taken, and Publish could not return before the broker is back. What else is wrong shows when the
// records are sent.
func (l *lane) probe(ctx context.Context, wave []*flight) {
	var leaders []int32
	for _, f := range wave {
		if leader := l.leader(f.partition); leader >= 0 && !slices.Contains(leaders, leader) {
			leaders = append(leaders, leader)
		}
	}
	if len(leaders) == 0 {
		return
	}
	// The client drops a dead connection just after it has told of it. The second time it opens a new one.
	const times = 3
	for range times {
		if l.client.EnsureProduceConnectionIsOpen(ctx, slices.Clone(leaders)...) == nil {
			return
		}
	}
}

// learn makes the client know the wave's topics. The only way is to produce: a record for a partition that cannot be is
// refused as soon as the client knows the topic, and never sent.
func (l *lane) learn(ctx context.Context, wave []*flight) {
	var known sync.WaitGroup
	asked := make(map[string]bool)
	for _, f := range wave {
		topic := f.partition.topic.name
		if asked[topic] || l.leader(f.partition) >= 0 {
			continue
		}
		asked[topic] = true
		known.Add(1)
		l.client.Produce(ctx, &kgo.Record{Topic: topic, Partition: -1}, func(*kgo.Record, error) { known.Done() })
	}
	known.Wait()
}

// leader returns the broker that leads the partition, -1 when there is none or the client does not know.
func (l *lane) leader(p *partition) int32 {
	leader, _, _ := l.client.PartitionLeader(p.topic.name, p.number)
	return leader
}

// close ends the client. The next wave gets a new one.
func (l *lane) close() {
	if l.client != nil {
		l.client.Close()
		l.client = nil
	}
}

func (l *lane) begin(wave []*flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wave, l.trouble = wave, nil
}

// explain replaces the errors of records that were given up by what stood in their way. A client that reported
// anything but a refusal or the end of the context may not send any more.
func (l *lane) explain(ctx context.Context, wave []*flight) {
	l.mu.Lock()
	trouble := l.trouble
	l.mu.Unlock()
	broken := false
	for _, f := range wave {
		for n, err := range f.errs {
			switch {
			case err == nil, isRefusal(err):
			case isContextError(err):
				f.errs[n] = gaveUp(ctx, err, l.obstacle(f, trouble))
			default:
				broken = true
			}
		}
	}
	if broken {
		l.close()
	}
}

// obstacle returns what is known to be wrong with the flight's partition or the connections, or nil.
func (l *lane) obstacle(f *flight, trouble error) error {
	if _, _, err := l.client.PartitionLeader(f.partition.topic.name, f.partition.number); err != nil {
		return err
	}
	return trouble
}

// gaveUp returns an error that says why, as far as that is known, the client gave up with err.
func gaveUp(ctx context.Context, err, obstacle error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if obstacle == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, obstacle)
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// OnBrokerConnect is called by the client for each connection that it opened or could not open.
func (l *lane) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		l.note(err)
	}
}

// OnBrokerE2E is called by the client for each request that was answered, or never will be.
func (l *lane) OnBrokerE2E(meta kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if err := e2e.Err(); err != nil {
		l.note(err)
	}
	const produce = 0
	if key == produce && e2e.BytesWritten > 0 {
		l.markSent(meta.NodeID)
	}
}

func (l *lane) markSent(broker int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.wave {
		if f.mayHaveGoneTo(broker, l.leader(f.partition)) {
			f.sent.Store(true)
		}
	}
}

func (l *lane) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = err
}
