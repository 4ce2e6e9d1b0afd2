package consumer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/inbox"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func itemOf(key, name, lane string) *item {
	return &item{delivery: &Delivery{Lane: lane, Message: inbox.Message{Coordinates: name}}, key: key, size: 10}
}

func fill(s *schedule, keys ...string) (items []*item) {
	for i, key := range keys {
		it := itemOf(key, fmt.Sprint(key, i), "l")
		s.add(it, noon)
		items = append(items, it)
	}
	return items
}

func names(items []*item) (names []string) {
	for _, it := range items {
		names = append(names, it.delivery.Message.Coordinates)
	}
	return names
}

func wantTake(t *testing.T, s *schedule, now time.Time, limit, idle int, want ...string) []*item {
	t.Helper()
	batch, _ := s.take(now, limit, idle)
	if got := names(batch); !slices.Equal(got, want) {
		t.Errorf("taken %v, want %v", got, want)
	}
	return batch
}

func TestABusyKeyWaitsAndOthersGoOn(t *testing.T) {
	s := newSchedule(100, 100)
	fill(s, "a", "b", "a", "", "")
	first := wantTake(t, s, noon, 3, 1, "a0", "a2", "b1")
	late := itemOf("a", "late", "l")
	s.add(late, noon)
	wantTake(t, s, noon, 10, 1, "3", "4")
	s.done(first[0])
	s.back(first[1].queue, first[1])
	wantTake(t, s, noon, 10, 1)
	s.release(first[1].queue, noon.Add(time.Second), noon)
	if at := s.next(); !at.Equal(noon.Add(time.Second)) {
		t.Errorf("the next is due at %v", at)
	}
	wantTake(t, s, noon, 10, 1)
	wantTake(t, s, noon.Add(time.Second), 10, 1, "a2", "late")
}

func TestAnItemThatIsNotDueHoldsUpNothing(t *testing.T) {
	s := newSchedule(100, 100)
	for i, wait := range []time.Duration{2, 1, 0} {
		it := itemOf("a", fmt.Sprint(i), "l")
		it.due = noon.Add(wait * time.Second)
		s.add(it, noon)
	}
	out := wantTake(t, s, noon, 10, 1, "2")
	s.done(out...)
	s.release(out[0].queue, time.Time{}, noon)
	wantTake(t, s, noon.Add(5*time.Second), 10, 1, "1", "0")
}

func TestIdleWorkersShareWhatIsReady(t *testing.T) {
	s := newSchedule(100, 100)
	fill(s, "a", "b", "c", "d", "e")
	wantTake(t, s, noon, 100, 3, "a0", "b1")
	wantTake(t, s, noon, 100, 2, "c2", "d3")
	wantTake(t, s, noon, 100, 1, "e4")
}

func TestALaneIsPausedBeyondItsBuffer(t *testing.T) {
	s := newSchedule(4, 2)
	turn := func(wantPause, wantResume []string) {
		t.Helper()
		if pause, resume := s.turns(); !slices.Equal(pause, wantPause) || !slices.Equal(resume, wantResume) {
			t.Errorf("pause %v, resume %v; want %v, %v", pause, resume, wantPause, wantResume)
		}
	}
	fill(s, "a", "a", "a")
	turn(nil, nil)
	fill(s, "a", "a")
	turn([]string{"l"}, nil)
	out := wantTake(t, s, noon, 10, 1, "a0", "a1", "a2", "a0", "a1")
	s.done(out[:2]...)
	turn(nil, nil) // not at once again
	s.done(out[2])
	turn(nil, []string{"l"})

	for range 2 {
		it := itemOf("b", "waits", "retry")
		it.due = noon.Add(time.Minute)
		s.add(it, noon)
	}
	turn([]string{"retry"}, nil)
	s.take(noon.Add(time.Minute), 10, 1)
	turn(nil, []string{"retry"})
}

func TestWhatIsRevokedIsNotBegun(t *testing.T) {
	s := newSchedule(100, 100)
	revoked := make(chan struct{})
	for i := range 4 {
		it := itemOf("a", fmt.Sprint(i), "l")
		if i%2 == 0 {
			it.delivery.Revoked = revoked
		}
		s.add(it, noon)
	}
	wantTake(t, s, noon, 1, 1, "0")
	close(revoked)
	if gone := names(s.remove(isRevoked)); !slices.Equal(gone, []string{"2"}) {
		t.Errorf("removed %v, want what is not out", gone)
	}
	late := itemOf("b", "late", "l")
	late.delivery.Revoked = revoked
	s.add(late, noon)
	if _, gone := s.take(noon, 10, 1); !slices.Equal(names(gone), []string{"late"}) {
		t.Errorf("came apart: %v, want what was revoked and not yet removed", names(gone))
	}
	if s.count != 3 {
		t.Errorf("%d in hand, want 3", s.count)
	}
}

func TestEverythingCanBeRemovedButWhatIsOut(t *testing.T) {
	s := newSchedule(100, 100)
	fill(s, "a", "a", "b", "", "")
	out := wantTake(t, s, noon, 1, 1, "a0")
	if gone := s.remove(func(*item) bool { return true }); len(gone) != 4 {
		t.Errorf("removed %v", names(gone))
	}
	s.done(out...)
	s.release(out[0].queue, time.Time{}, noon)
	if s.count != 0 || s.bytes != 0 || len(s.queues)+len(s.ready)+len(s.sleeping) != 0 {
		t.Errorf("something is left: %+v", s)
	}
}

func TestRoom(t *testing.T) {
	s := newSchedule(100, 100)
	for _, c := range []struct{ count, bytes, want int }{
		{0, 0, 10}, {4, 4, 6}, {10, 10, 0}, {2, 1000, 0}, {2, 999, 1}, {2, 500, 2},
	} {
		s.count, s.bytes = c.count, c.bytes
		if got := s.room(10, 1000); got != c.want {
			t.Errorf("room with %d messages of %d bytes: %d, want %d", c.count, c.bytes, got, c.want)
		}
	}
}
