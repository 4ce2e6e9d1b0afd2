package daemon

import (
	"runtime/debug"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	const ask = -1
	before := debug.SetMemoryLimit(ask)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })

	limitMemory(32 << 20)
	if got := debug.SetMemoryLimit(ask); got != 96<<20 {
		t.Errorf("limit %d", got)
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	limitMemory(64 << 20)
	if got := debug.SetMemoryLimit(ask); got != 96<<20 {
		t.Errorf("the environment's limit was replaced by %d", got)
	}
}
