// Package presets_test runs the whole program on tables that others have designed: their tables are made and filled as
// their own frameworks do it, three relays share the work, one of them is killed, and the topics are read back.
package presets_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/integration/internal/broker"
	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/integration/internal/ledger"
	"github.com/postrider/postrider/internal/await"
)

var binary string

func TestMain(m *testing.M) { daemon.Main(m, map[*string]string{&binary: "../../cmd/postrider"}) }

const (
	keys     = 20
	events   = 600
	rollBack = 10 // one transaction of so many is rolled back

	limit = 2 * time.Minute
)

func TestPresets(t *testing.T) {
	for _, p := range presets {
		for _, server := range p.servers {
			t.Run(p.name+p.relay+"/"+server.name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, p, server)
				relays := []*daemon.Process{s.start(t), s.start(t), s.start(t)}
				added := s.addSome(t, events/3)
				await.True(t, limit, "some are published", func() bool { return s.table.left(t) < len(added)/2 })
				relays[0].Signal(t, syscall.SIGKILL)
				added = append(added, s.addSome(t, events-events/3)...)
				await.True(t, limit, "all are published", func() bool { return s.table.left(t) == 0 })
				s.check(t, added)
				for _, relay := range relays[1:] {
					relay.Signal(t, syscall.SIGTERM)
					if code := relay.Wait(t, limit); code != 0 {
						t.Errorf("a relay ended with code %d", code)
					}
				}
			})
		}
	}
}

// event is what a producer adds.
type event struct {
	id      string // its identity, in the form that the table wants
	key     string
	number  int // counts the committed events of the key
	payload string
}

// addSome adds events, some of which are rolled back, in transactions of one to three. It returns those that were committed.
func (s *stage) addSome(t *testing.T, n int) (committed []event) {
	t.Helper()
	for range n {
		size := 1 + rand.N(3)
		some := make([]event, size)
		for i := range some {
			some[i] = s.next()
		}
		if rand.N(rollBack) == 0 {
			s.table.add(t, s, some, false)
			for _, e := range some {
				s.numbers[e.key]--
			}
			continue
		}
		s.table.add(t, s, some, true)
		committed = append(committed, some...)
	}
	return committed
}

// next makes the next event of some key. Bytes that a careless relay would change are among those of its payload.
func (s *stage) next() event {
	s.count++
	key := fmt.Sprint(1 + rand.N(keys))
	s.numbers[key]++
	return event{id: s.preset.id(s.count), key: key, number: s.numbers[key],
		payload: fmt.Sprintf(`{"n": %d, "key": %q, "text": "ä \" 😀 \\u0041"}`, s.numbers[key], key)}
}

// check compares the topic with what was committed: each event is there with its envelope, nothing else is, and the first
// deliveries of a key come in its order.
func (s *stage) check(t *testing.T, committed []event) {
	t.Helper()
	messages := broker.Messages(t, s.kafka, s.topic)
	slices.SortStableFunc(messages, func(a, b ledger.Message) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	expected := make(map[string]event)
	for _, e := range committed {
		expected[e.id] = e
	}
	arrived := make(map[string]bool)
	last := make(map[string]int)
	for _, m := range messages {
		id := m.Header(s.preset.idHeader)
		e, known := expected[id]
		if !known {
			t.Fatalf("message of event %q, which was not committed: %+v", id, m)
		}
		s.checkMessage(t, e, m)
		if arrived[id] {
			continue
		}
		arrived[id] = true
		if e.number != last[e.key]+1 && !s.preset.unordered {
			t.Fatalf("event %d of key %s came after event %d", e.number, e.key, last[e.key])
		}
		last[e.key] = e.number
	}
	if len(arrived) != len(expected) {
		t.Fatalf("%d of %d committed events arrived", len(arrived), len(expected))
	}
	t.Logf("%d committed, %d messages", len(committed), len(messages))
}

func (s *stage) checkMessage(t *testing.T, e event, m ledger.Message) {
	t.Helper()
	want := s.preset.message(s, e)
	if m.Key != e.key {
		t.Fatalf("the key is %q, want %q", m.Key, e.key)
	}
	for name, value := range want.headers {
		if got := m.Header(name); got != value {
			t.Fatalf("header %s is %q, want %q; the message is %+v", name, got, value, m)
		}
	}
	if !sameJSON(t, m.Payload, []byte(want.payload)) {
		t.Fatalf("the payload is %s, want %s", m.Payload, want.payload)
	}
	if s.preset.exact && !bytes.Equal(m.Payload, []byte(want.payload)) {
		t.Fatalf("the payload is not byte for byte %s, but %s", want.payload, m.Payload)
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatalf("the payload %q is no JSON: %v", a, err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}
