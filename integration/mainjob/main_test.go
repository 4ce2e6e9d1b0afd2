// Package mainjob tests what Postrider is for: events that were committed to PostgreSQL arrive at Kafka, whatever
// happens on the way. The relays are processes of the real command, the servers are real, and what arrived is read by
// a client of others and compared with the ledgers of the producers.
//
// POSTRIDER_FULL=1 makes the runs as long as the promises are worded: 100,000 events, outages of two minutes.
package mainjob_test

import (
	"os"
	"testing"
	"time"

	"github.com/postrider/postrider/integration/internal/daemon"
)

var (
	binary string // the postrider command
	load   string // the load generator of examples/wallet
)

func TestMain(m *testing.M) {
	daemon.Main(m, map[*string]string{&binary: "../../cmd/postrider", &load: "../../examples/wallet/load"})
}

// full returns the first value in a full run and the second otherwise.
func full[T int | time.Duration](inFull, otherwise T) T {
	if os.Getenv("POSTRIDER_FULL") == "1" {
		return inFull
	}
	return otherwise
}
