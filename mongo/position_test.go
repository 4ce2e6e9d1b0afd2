package mongo

import (
	"testing"
	"time"
)

func TestIDsAreInTheOrderOfThePositions(t *testing.T) {
	start := time.Date(2026, 3, 9, 23, 59, 59, 999_998_000, time.UTC).UnixMicro()
	last := idAt(start - 1)
	for position := start; position < start+1000; position++ {
		id := idAt(position)
		if id.Hex() <= last.Hex() {
			t.Fatalf("the id at %d is %s, not behind %s", position, id.Hex(), last.Hex())
		}
		last = id
	}
	if at := idAt(start).Timestamp(); !at.Equal(time.UnixMicro(start).Truncate(time.Second)) {
		t.Errorf("an id tells the time %v", at)
	}
}

func TestIDsAtOnePositionDiffer(t *testing.T) {
	if a, b := idAt(1), idAt(1); a == b {
		t.Errorf("two ids are %s", a.Hex())
	}
}
