package daemon

import (
	"os"
	"runtime/debug"
)

// limitMemory makes the Go runtime collect garbage seldom while the process is small, and in time before it has grown
// beyond what it needs: what is in flight, twice because a sink encodes it, and the rest. GOMEMLIMIT and GOGC override it.
func limitMemory(inFlight int) {
	const (
		rest       = 56 << 20
		gcPercent  = 300
		inFlightBy = 2
	)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(rest + inFlightBy*int64(inFlight))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
