package daemon

import (
	"runtime/debug"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	const ask = -1
	limit, percent := debug.SetMemoryLimit(ask), debug.SetGCPercent(100)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	})

	limitMemory(16 << 20)
	if got := debug.SetMemoryLimit(ask); got != 88<<20 {
		t.Errorf("limit %d", got)
	}
	if got := debug.SetGCPercent(100); got != 300 {
		t.Errorf("collections at %d %%", got)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	t.Setenv("GOGC", "100")
	limitMemory(64 << 20)
	if got := debug.SetMemoryLimit(ask); got != 88<<20 {
		t.Errorf("the environment's limit was replaced by %d", got)
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("the environment's share was replaced by %d", got)
	}
}
