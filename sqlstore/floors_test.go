package sqlstore

import "testing"

func TestAFloorNeedsThreeLooks(t *testing.T) {
	f := newFloors()
	step := func(lowest, oldest, next, want int64) {
		t.Helper()
		f.learn(look{lowest: map[int]int64{0: lowest}, oldest: oldest, next: next})
		if got := f.of([]int{0})[0]; got != want {
			t.Errorf("after a look at lowest id %d, transactions %d to %d: floor %d, want %d", lowest, oldest, next, got, want)
		}
	}
	step(100, 50, 60, 0) // transactions 50 to 59 may hold lower ids, and so may some that are yet to begin
	step(150, 60, 70, 0) // these have begun by now, with numbers below 70
	step(200, 69, 80, 0) // one of them is still at work
	step(200, 70, 80, 100)
	step(40, 75, 90, 40) // an event was made to wait again
	step(200, 100, 110, 200)
	f.forget() // because it makes an event wait again
	if got := f.of([]int{0})[0]; got != 0 {
		t.Errorf("floor %d after forget", got)
	}
	step(300, 200, 210, 0)
}
