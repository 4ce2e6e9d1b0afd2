package mainjob_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/postrider/postrider/integration/internal/ledger"
	"github.com/postrider/postrider/internal/await"
)

// Immediate dispatch: whoever has committed tells the relays, which publish at once and not only at their next poll. Order
// stays with the relay that owns the key's shard.
func TestHintAfterTheCommitPublishesAtOnce(t *testing.T) {
	s := newStage(t)
	s.relay["poll"] = "{min: 1m, max: 1m}"
	relays := s.startReady(t, "one", "two")
	hint := func() {
		for _, relay := range relays {
			if got := relay.Post(t, "/hint"); got != http.StatusNoContent {
				t.Fatalf("a hint is answered with status %d", got)
			}
		}
	}
	var all []ledger.Event
	b := &batch{}
	for i := range 50 {
		b.event(fmt.Sprintf("w-%d", i), payload(i))
	}
	// After the first round each relay sleeps until its next poll.
	for round := 1; round <= 3; round++ {
		all = append(all, b.commit(t, s)...)
		hint()
		b = b.next()
		await.True(t, 20*time.Second, "the events are published long before the next poll", func() bool {
			return s.inState("PUBLISHED") == len(all)
		})
	}
	if report := s.check(t, all); report.Duplicates != 0 {
		t.Errorf("%d duplicates", report.Duplicates)
	}
}
