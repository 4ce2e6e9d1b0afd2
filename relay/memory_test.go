package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// memory is a Store for tests of the engine alone: it lets a test make the database slow, failing or late. What
// databases really do is tested by storetest.
type memory struct {
	mu     sync.Mutex
	rows   []*row
	shards []shardRow
	beats  map[string]time.Time
	err    error                // every call fails with it
	lag    time.Duration        // every call takes this long
	late   func() time.Duration // a read's answer takes this long after its snapshot; nil means no time
	left   map[string]int64     // highest version that has left, by key
}

type row struct {
	claim  claim
	event  relay.Event
	state  postrider.State
	added  time.Time
	due    time.Time
	failed bool
	holds  bool // its key, while it is DEAD
	to     string
	reason string
	sink   string // at which it failed
	seen   bool   // committed
}

type shardRow struct {
	owner string
	epoch int64
	until time.Time
}

const testShards = 4

func newMemory() *memory {
	return &memory{shards: make([]shardRow, testShards), beats: make(map[string]time.Time), left: make(map[string]int64)}
}

// add commits an event of a key and returns its id.
func (m *memory) add(key, eventType string) string {
	id, commit := m.begin(key, eventType)
	commit()
	return id
}

// addVersion commits an event with a version of the aggregate that the key names.
func (m *memory) addVersion(key, eventType string, version int64) string {
	id, commit := m.begin(key, eventType)
	m.mu.Lock()
	m.rows[len(m.rows)-1].event.AggregateVersion = &version
	m.mu.Unlock()
	commit()
	return id
}

// after returns the version that must leave before the row.
func (m *memory) after(r *row) *int64 {
	if r.event.AggregateVersion == nil {
		return nil
	}
	before := *r.event.AggregateVersion - 1
	left, any := m.left[r.event.AggregateID]
	lower := false
	for _, other := range m.rows {
		v := other.event.AggregateVersion
		if v == nil || !other.seen || other.state != postrider.StatePending || other.event.AggregateID != r.event.AggregateID {
			continue
		}
		if *v == before && slices.Index(m.rows, other) < slices.Index(m.rows, r) {
			return nil
		}
		lower = lower || *v <= before
	}
	if before <= left || !any && !lower {
		return nil
	}
	return &before
}

// begin adds an event in a transaction that commit ends.
func (m *memory) begin(key, eventType string) (id string, commit func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id = strconv.Itoa(len(m.rows) + 1)
	sum := 0
	for _, c := range key {
		sum += int(c)
	}
	r := &row{state: postrider.StatePending, added: time.Now(), due: time.Now(), event: relay.Event{
		ID: id, EventID: "event-" + id, Shard: sum % testShards, AggregateType: "order",
		AggregateID: key, EventType: eventType, Payload: []byte(id), ContentType: "application/json",
	}}
	m.rows = append(m.rows, r)
	return id, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		r.seen = true
	}
}

// fail makes every call fail from now on; nil ends that.
func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// steal gives every shard to another owner, as a takeover does.
func (m *memory) steal(owner string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.shards {
		m.shards[i] = shardRow{owner: owner, epoch: m.shards[i].epoch + 1, until: time.Now().Add(time.Hour)}
	}
	m.beats[owner] = time.Now().Add(time.Hour)
}

// redrive makes those DEAD events PENDING for which chosen says so, as an operator does; all of them when it is nil.
func (m *memory) redrive(chosen func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		if r.state == postrider.StateDead && (chosen == nil || chosen()) {
			r.state, r.event.RetryCount, r.due, r.failed, r.holds = postrider.StatePending, 0, time.Now(), false, false
		}
	}
}

func (m *memory) find(id string) row {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, _ := strconv.Atoi(id)
	return *m.rows[n-1]
}

func (m *memory) count(state postrider.State) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, r := range m.rows {
		if r.state == state {
			n++
		}
	}
	return n
}

// enter starts a call: it takes as long as the test says and fails if the test says so.
func (m *memory) enter(ctx context.Context) error {
	m.mu.Lock()
	lag := m.lag
	m.mu.Unlock()
	if lag > 0 {
		select {
		case <-time.After(lag):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	if err := errors.Join(m.err, ctx.Err()); err != nil {
		m.mu.Unlock()
		return err
	}
	return nil
}

func (m *memory) Renew(ctx context.Context, beat relay.Heartbeat, held []relay.Lease) (relay.LeaseTable, error) {
	if err := m.enter(ctx); err != nil {
		return relay.LeaseTable{}, err
	}
	defer m.mu.Unlock()
	now := time.Now()
	m.beats[beat.ID] = now
	for _, h := range held {
		if s := &m.shards[h.Shard]; s.owner == beat.ID && s.epoch == h.Epoch {
			s.until = now.Add(beat.LeaseTTL)
		}
	}
	var table relay.LeaseTable
	for i, s := range m.shards {
		table.Shards = append(table.Shards, relay.ShardLease{
			Lease: relay.Lease{Shard: i, Epoch: s.epoch}, Owner: s.owner, Expired: s.owner != "" && !now.Before(s.until),
		})
	}
	for id, at := range m.beats {
		if now.Sub(at) < beat.LeaseTTL {
			table.Live = append(table.Live, id)
		}
	}
	slices.Sort(table.Live)
	return table, nil
}

func (m *memory) Acquire(ctx context.Context, who relay.Member, seen []relay.Lease) ([]relay.Lease, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var taken []relay.Lease
	for _, l := range seen {
		s := &m.shards[l.Shard]
		if s.epoch == l.Epoch && (s.owner == "" || !time.Now().Before(s.until)) {
			*s = shardRow{owner: who.ID, epoch: s.epoch + 1, until: time.Now().Add(who.LeaseTTL)}
			taken = append(taken, relay.Lease{Shard: l.Shard, Epoch: s.epoch})
		}
	}
	return taken, nil
}

func (m *memory) Release(ctx context.Context, who relay.Member, held []relay.Lease) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, l := range held {
		if s := &m.shards[l.Shard]; s.owner == who.ID && s.epoch == l.Epoch {
			s.owner = ""
		}
	}
	return nil
}

func (m *memory) Leave(ctx context.Context, who relay.Member) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	delete(m.beats, who.ID)
	return nil
}

func (m *memory) Read(ctx context.Context, req relay.ReadRequest) ([]relay.Event, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	events, late := m.snapshot(req), m.late
	m.mu.Unlock()
	if late != nil {
		time.Sleep(late())
	}
	return events, nil
}

func (m *memory) snapshot(req relay.ReadRequest) []relay.Event {
	var events []relay.Event
	perShard := make(map[int]int)
	waiting := make(map[string]*row) // the first of each key that failed
	held := make(map[string]bool)
	for _, r := range m.rows {
		held[r.event.Key()] = held[r.event.Key()] || r.state == postrider.StateDead && r.holds
	}
	shards, inFlight, skipKeys := set(req.Shards), set(req.InFlight), set(req.SkipKeys)
	bytes := 0
	for _, r := range m.rows {
		e := r.event
		if !r.seen || held[e.Key()] || r.state != postrider.StatePending || waiting[e.Key()] != nil && !lower(r, waiting[e.Key()]) {
			continue
		}
		if r.failed && waiting[e.Key()] == nil {
			waiting[e.Key()] = r
		}
		if time.Now().Before(r.due) || !shards[e.Shard] || inFlight[e.ID] || skipKeys[e.Key()] ||
			slices.Contains(req.Skip, e.Kind()) {
			continue
		}
		if perShard[e.Shard] == req.PerShard || len(events) == req.Limit || bytes >= req.MaxBytes {
			continue
		}
		perShard[e.Shard]++
		bytes += e.Size()
		e.RetryCount, e.After = r.event.RetryCount, m.after(r)
		events = append(events, e)
	}
	return events
}

// lower says whether r has a lower version than other.
func lower(r, other *row) bool {
	v, w := r.event.AggregateVersion, other.event.AggregateVersion
	return v != nil && w != nil && *v < *w
}

func set[T comparable](values []T) map[T]bool {
	s := make(map[T]bool, len(values))
	for _, v := range values {
		s[v] = true
	}
	return s
}

func (m *memory) Settle(ctx context.Context, who relay.Member, settlements []relay.Settlement) ([]string, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var written []string
	for _, s := range settlements {
		n, _ := strconv.Atoi(s.ID)
		r, shard := m.rows[n-1], m.shards[s.Lease.Shard]
		if shard.owner != who.ID || shard.epoch != s.Lease.Epoch || r.state != postrider.StatePending {
			continue
		}
		r.state, r.to, r.reason, r.sink, r.holds = s.State, s.PublishedTo, s.Error, s.Sink, s.HoldsKey
		if v := r.event.AggregateVersion; v != nil && r.state != postrider.StatePending {
			m.left[r.event.AggregateID] = max(*v, m.left[r.event.AggregateID])
		}
		r.event.RetryCount, r.due, r.failed = s.RetryCount, time.Now().Add(s.RetryAfter), true
		written = append(written, s.ID)
	}
	return written, nil
}

func (m *memory) Clean(ctx context.Context, req relay.CleanRequest) (relay.CleanResult, error) {
	if err := m.enter(ctx); err != nil {
		return relay.CleanResult{}, err
	}
	defer m.mu.Unlock()
	return relay.CleanResult{Done: true}, nil
}

func (m *memory) Backlog(ctx context.Context) (relay.Backlog, error) {
	if err := m.enter(ctx); err != nil {
		return relay.Backlog{}, err
	}
	defer m.mu.Unlock()
	var b relay.Backlog
	for _, r := range m.rows {
		if r.seen && r.state == postrider.StatePending {
			b.Pending++
			b.OldestPending = max(b.OldestPending, time.Since(r.added))
		}
	}
	return b, nil
}

// recorder is a Sink that does as the test says and notes what reached it.
type recorder struct {
	mu        sync.Mutex
	delivered []relay.Message
	answer    func(m relay.Message) relay.Outcome // nil publishes everything
	wait      chan struct{}                       // when set, Publish waits for it to be closed
	calls     int
	largest   int
}

func (s *recorder) Publish(ctx context.Context, batch []relay.Message) []relay.Outcome {
	s.mu.Lock()
	s.calls++
	s.largest = max(s.largest, len(batch))
	wait, answer := s.wait, s.answer
	s.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return all(batch, relay.Unavailable(ctx.Err()))
		}
	}
	outcomes := make([]relay.Outcome, len(batch))
	broken := make(map[string]bool)
	for i, m := range batch {
		switch {
		case broken[m.Key]:
			outcomes[i] = relay.Skipped()
			continue
		case answer != nil:
			outcomes[i] = answer(m)
		default:
			outcomes[i] = relay.Published("memory:" + m.EventID)
		}
		if outcomes[i].Class == relay.ClassPublished {
			s.mu.Lock()
			s.delivered = append(s.delivered, m)
			s.mu.Unlock()
		} else {
			broken[m.Key] = true
		}
	}
	return outcomes
}

func all(batch []relay.Message, o relay.Outcome) []relay.Outcome {
	outcomes := make([]relay.Outcome, len(batch))
	for i := range outcomes {
		outcomes[i] = o
	}
	return outcomes
}

func (s *recorder) Close() error { return nil }

func (s *recorder) set(answer func(relay.Message) relay.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// hold makes Publish wait until the returned function is called.
func (s *recorder) hold() (letGo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := make(chan struct{})
	s.wait = wait
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wait = nil
		close(wait)
	}
}

// asked says whether Publish was called.
func (s *recorder) asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls > 0
}

// ids returns the payloads (the rows' ids) delivered for a key, in order; for all keys when key is empty.
func (s *recorder) ids(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, m := range s.delivered {
		if key == "" || m.Key == key {
			ids = append(ids, string(m.Payload))
		}
	}
	return ids
}

// setup is a relay configuration over one memory and one sink that takes every event.
func setup(m *memory, s relay.Sink) relay.Config {
	return relay.Config{
		Store: m, Name: "test", Shards: testShards, Lease: 10 * time.Second,
		Sinks:  []relay.NamedSink{{Name: "main", Type: "memory", Sink: s}},
		Routes: []relay.Route{{Sink: "main"}},
		Retry:  relay.RetryPolicy{Schedule: []time.Duration{time.Second, time.Minute}},
	}
}

// start runs a relay until stop is called; stop returns what Run returned.
func start(t *testing.T, cfg relay.Config) (r *relay.Relay, stop func() error) {
	t.Helper()
	r, err := relay.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() }) // for tests that fail before they stop it themselves
	return r, stop
}

// await waits, in steps of the bubble's time, until ok holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("never: " + what)
}

func wantIDs(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
}

var errTest = errors.New("refused by the test")

func key(i int) string { return fmt.Sprintf("key-%d", i) }
