package daemon

import (
	"os"
	"runtime/debug"
)

// limitMemory tells the Go runtime to collect garbage before the process has grown beyond what it needs: what is in
// flight, twice because a sink encodes it, and the rest. GOMEMLIMIT overrides it.
func limitMemory(inFlight int) {
	const rest = 32 << 20
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(rest + 2*int64(inFlight))
	}
}
