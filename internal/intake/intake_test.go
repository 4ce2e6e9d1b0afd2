package intake

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/postrider/postrider/consumer"
)

// fill returns an intake of one shelf for each list of lanes, which holds a message of each.
func fill(lists ...[]string) (*Intake[string], []*Shelf[string]) {
	var mu sync.Mutex
	in := New(&mu, func(lane string) string { return lane }, func(lane string) *consumer.Delivery { return &consumer.Delivery{Lane: lane} })
	var shelves []*Shelf[string]
	for _, lanes := range lists {
		s := in.NewShelf()
		for _, lane := range lanes {
			s.Add(lane)
		}
		shelves = append(shelves, s)
	}
	return in, shelves
}

// wantFetch wants what Fetch returns, and an error with these words.
func wantFetch(t *testing.T, in *Intake[string], limit int, words string, lanes ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what is there comes all the same
	got, err := in.Fetch(ctx, limit)
	var have []string
	for _, d := range got {
		have = append(have, d.Lane)
	}
	if !slices.Equal(have, lanes) || (err == nil) != (words == "") || err != nil && err.Error() != words {
		t.Errorf("got %q and %v, want %q and %q", have, err, lanes, words)
	}
}

const nothing = "context canceled"

func TestReadersTakeTurns(t *testing.T) {
	in, _ := fill([]string{"a", "a", "a", "a"}, []string{"b", "b"})
	wantFetch(t, in, 3, "", "b", "b", "a")
	wantFetch(t, in, 2, "", "a", "a")
	wantFetch(t, in, 2, "", "a")
	wantFetch(t, in, 2, nothing)
}

func TestAPausedLaneStays(t *testing.T) {
	in, shelves := fill([]string{"a", "b", "a", "b"})
	in.Pause("a")
	wantFetch(t, in, 1, "", "b")
	if shelves[0].Idle() {
		t.Error("the reader is idle, though something can be fetched")
	}
	wantFetch(t, in, 9, "", "b")
	wantFetch(t, in, 9, nothing)
	if !shelves[0].Idle() || !shelves[0].IsPaused("a") || shelves[0].IsPaused("b") {
		t.Error("the reader is not idle, though only what is paused is left")
	}
	in.Resume("a")
	wantFetch(t, in, 9, "", "a", "a")
}

// TestFetchWakes has several wait, one after the other, for what comes, fails or is resumed.
func TestFetchWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, shelves := fill([]string{"paused", "paused"})
		in.Pause("paused")
		fetched := make(chan string, 5)
		for range 5 {
			go func() {
				got, err := in.Fetch(t.Context(), 1)
				if err != nil {
					fetched <- err.Error()
				} else {
					fetched <- got[0].Lane
				}
			}()
		}
		wakes := func(what func(), want ...string) {
			t.Helper()
			synctest.Wait()
			what()
			synctest.Wait()
			var got []string
			for len(fetched) > 0 {
				got = append(got, <-fetched)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("fetched %q, want %q", got, want)
			}
		}
		wakes(func() {
			in.mu.Lock()
			defer in.mu.Unlock()
			shelves[0].Add("one")
			shelves[0].Add("two")
		}, "one", "two")
		wakes(func() { shelves[0].Fail(errors.New("failed")) }, "failed")
		wakes(func() { in.Resume("paused") }, "paused", "paused")
	})
}

func TestEachFailureIsToldOnce(t *testing.T) {
	in, shelves := fill([]string{"a"}, nil, nil)
	shelves[0].Fail(errors.New("no connection"))
	shelves[1].Fail(errors.New("no queue"))
	shelves[2].Fail(errors.New("no connection"))
	wantFetch(t, in, 1, strings.Join([]string{"no connection", "no queue"}, "\n"))
	wantFetch(t, in, 1, "", "a")
}

func TestAReaderLearnsThatThereIsRoom(t *testing.T) {
	in, shelves := fill([]string{"a", "a"}, []string{"b"})
	wantFreed := func(want ...bool) {
		t.Helper()
		for i, s := range shelves {
			select {
			case <-s.Freed:
				if !want[i] {
					t.Errorf("reader %d was told of room, though something of it can be fetched", i)
				}
			default:
				if want[i] {
					t.Errorf("reader %d was not told that it may have room", i)
				}
			}
		}
	}
	in.Pause("b")
	wantFreed(true, true)
	wantFetch(t, in, 1, "", "a")
	wantFreed(false, true) // the second has nothing but what is paused
	wantFetch(t, in, 1, "", "a")
	wantFreed(true, true)
}
