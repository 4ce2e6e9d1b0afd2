package operator_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/operator"
)

func TestFingerprint(t *testing.T) {
	for text, want := range map[string]string{
		`status 503 after 12.5s`: `status <n> after <n>.<n>s`,
		`key "user-17" of 'topic' at 0192F0C1-9a3b-7c4d-8e5f-0123456789ab`: `key <id> of 'topic' at <uuid>`,
		`no route`: `no route`,
		`the row's payload, 12 bytes of 'x', isn't 'valid-1'`: `the row's payload, <n> bytes of 'x', isn't <id>`,
		`'order's 5' and "a" of 17 "b"`:                       `<id> and "a" of <n> "b"`,
		`the tables' 2 rows: 'x-' of 3 'y' ('key 4')`:         `the tables' <n> rows: 'x-' of <n> 'y' (<id>)`,
	} {
		if got := operator.Fingerprint(text); got != want {
			t.Errorf("operator.Fingerprint(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestGroupAddsUpAndKeepsTheOldest(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	groups := operator.Group([]operator.DeadGroup{
		{EventType: "a", Error: "x", Count: 1, Oldest: late}, {EventType: "b", Error: "x", Count: 1, Holding: 1, Oldest: late},
		{EventType: "b", Error: "x", Count: 1, Holding: 1, Oldest: early}, {EventType: "b", Error: "y", Count: 1, Oldest: late},
		{EventType: "a", Error: "x", Sink: "s", Count: 1, Oldest: late},
	})
	if len(groups) != 4 || groups[0].EventType != "b" || groups[0].Count != 2 || groups[0].Holding != 2 || groups[1].Holding != 0 || !groups[0].Oldest.Equal(early) {
		t.Errorf("got %+v", groups)
	}
}
