package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postrider/postrider/integration/internal/ledger"
)

// committed makes n events of one key, and delivered the messages that they must become.
func committed(n int) (events []ledger.Event) {
	for i := range n {
		events = append(events, ledger.Event{
			EventID: fmt.Sprintf("event-%d", i+1), Key: "w", Sequence: int64(i + 1), Type: "Debited",
			SHA256: ledger.Digest(payload(i + 1)), Headers: map[string]string{"b": "2", "a": "1"}, Committed: true,
		})
	}
	return events
}

func payload(n int) []byte { return fmt.Appendf(nil, `{"n":%d}`, n) }

func delivered(numbers ...int) (messages []ledger.Message) {
	for offset, n := range numbers {
		id := fmt.Sprintf("event-%d", n)
		messages = append(messages, ledger.Message{
			Topic: "t", Offset: int64(offset), Key: "w", Payload: payload(n),
			Headers: []ledger.Header{
				{Name: "X-Event-Id", Value: id}, {Name: "X-Idempotency-Key", Value: id}, {Name: "X-Event-Type", Value: "Debited"},
				{Name: "X-Aggregate-Type", Value: "wallet"}, {Name: "X-Aggregate-Id", Value: "w"},
				{Name: "X-Outbox-Id", Value: fmt.Sprint(100 + n)}, {Name: "X-Aggregate-Version", Value: fmt.Sprint(n)},
				{Name: "content-type", Value: "application/json"}, {Name: "a", Value: "1"}, {Name: "b", Value: "2"},
			},
		})
	}
	return messages
}

func TestCheckAcceptsDuplicatesInAnyPlace(t *testing.T) {
	for _, numbers := range [][]int{{1, 2, 3}, {1, 2, 1, 2, 3}, {1, 2, 3, 1}} {
		r := ledger.Check("wallet", committed(3), delivered(numbers...))
		if err := r.Err(); err != nil || r.Duplicates != len(numbers)-3 {
			t.Errorf("%v: %v, error %v", numbers, r, err)
		}
	}
}

func TestCheckFindsEachDifference(t *testing.T) {
	tests := map[string]struct {
		spoil func(events []ledger.Event, messages []ledger.Message) ([]ledger.Event, []ledger.Message)
		want  string
	}{
		"missing": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) { return e, m[:2] }, "missing"},
		"ghost of a rolled back event": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) {
			e[1].Committed = false
			return e, m
		}, "ghosts"},
		"ghost that nobody added": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) { return e[:2], m }, "ghosts"},
		"overtaken": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) {
			m[1].Offset, m[2].Offset = m[2].Offset, m[1].Offset
			return e, m
		}, "out of order"},
		"another partition": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) {
			m[2].Partition = 1
			return e, m
		}, "out of order"},
		"payload encoded again": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) {
			m[0].Payload = []byte(`{"n": 1}`)
			return e, m
		}, "altered"},
		"another key": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) {
			m[0].Key = "v"
			return e, m
		}, "envelopes"},
		"a header too few": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) {
			m[0].Headers = m[0].Headers[:9]
			return e, m
		}, "envelopes"},
		"a header too many": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) {
			m[0].Headers = append(m[0].Headers, ledger.Header{Name: "c", Value: "3"})
			return e, m
		}, "envelopes"},
		"no outbox id": {func(e []ledger.Event, m []ledger.Message) ([]ledger.Event, []ledger.Message) {
			m[0].Headers[5].Value = ""
			return e, m
		}, "envelopes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			events, messages := test.spoil(committed(3), delivered(1, 2, 3))
			if r := ledger.Check("wallet", events, messages); r.Err() == nil || !strings.Contains(r.Err().Error(), test.want) {
				t.Errorf("%v, error %v: want one that tells %q", r, r.Err(), test.want)
			}
		})
	}
}

func TestReadRefusesWhatIsNoLedger(t *testing.T) {
	good, bad := filepath.Join(t.TempDir(), "good"), filepath.Join(t.TempDir(), "bad")
	write(t, good, `{"event_id":"e","key":"k","sequence":7,"type":"t","sha256":"d","headers":{"h":"v"},"committed":true}`+"\n")
	write(t, bad, "{}\nnot JSON\n")

	events, err := ledger.Read(good, good)
	if err != nil || len(events) != 2 || events[1].Sequence != 7 || events[1].Headers["h"] != "v" || !events[1].Committed {
		t.Errorf("good ledger: %+v, error %v", events, err)
	}
	if _, err := ledger.Read(bad); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("bad ledger: error %v, want one that names line 2", err)
	}
	if _, err := ledger.Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing ledger was read")
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
