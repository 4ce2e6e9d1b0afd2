package uuid

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var v7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestNewV7HasTheFormOfVersion7(t *testing.T) {
	before := time.Now().UnixMilli()
	id := NewV7()
	after := time.Now().UnixMilli()

	if !v7.MatchString(id) {
		t.Fatalf("%s is not a version 7 UUID", id)
	}
	if ms := milli(t, id); ms < before || ms > after {
		t.Errorf("%s carries the time %d, want one between %d and %d", id, ms, before, after)
	}
}

func TestUUIDsGrowWhateverTheClockDoes(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	for name, clock := range map[string]func(i int) time.Time{
		"moves on":     func(i int) time.Time { return start.Add(time.Duration(i) * time.Millisecond) },
		"stands still": func(int) time.Time { return start },
		"runs back":    func(i int) time.Time { return start.Add(-time.Duration(i) * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			i := 0
			g := generator{now: func() time.Time { i++; return clock(i) }}
			last := g.next()
			for range 20_000 { // several times what the counter holds
				id := g.next()
				if id <= last {
					t.Fatalf("%s follows %s", id, last)
				}
				if !v7.MatchString(id) {
					t.Fatalf("%s is not a version 7 UUID", id)
				}
				last = id
			}
		})
	}
}

func TestTimestampRunsAheadOnlyWhenTheCounterIsFull(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	g := generator{now: func() time.Time { return now }}
	g.next()
	for range 1 << (counterBits - 1) { // the room that every fresh counter has
		if ms := milli(t, g.next()); ms != now.UnixMilli() {
			t.Fatalf("time %d, want %d", ms, now.UnixMilli())
		}
	}
}

func TestNewV7IsUniqueAcrossGoroutines(t *testing.T) {
	const workers, each = 8, 2_000
	ids := make([][]string, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				ids[w] = append(ids[w], NewV7())
			}
		})
	}
	wg.Wait()

	seen := map[string]bool{}
	for _, mine := range ids {
		for i, id := range mine {
			if seen[id] {
				t.Fatalf("%s twice", id)
			}
			seen[id] = true
			if i > 0 && id <= mine[i-1] {
				t.Fatalf("%s follows %s", id, mine[i-1])
			}
		}
	}
}

func TestCanonical(t *testing.T) {
	const id = "01890a5d-ac96-774b-bcce-b302099a8057"
	for in, want := range map[string]string{
		id:                                     id,
		strings.ToUpper(id):                    id,
		Nil:                                    Nil,
		"":                                     "",
		id[:35]:                                "",
		id + "0":                               "",
		"{" + id + "}":                         "",
		strings.ReplaceAll(id, "-", ""):        "",
		strings.Replace(id, "-", "0", 1):       "",
		strings.Replace(id, "a", "g", 1):       "",
		strings.Replace(id, "0189", "-189", 1): "",
	} {
		got, ok := Canonical(in)
		if got != want || ok != (want != "") {
			t.Errorf("Canonical(%q) = %q, %v; want %q", in, got, ok, want)
		}
	}
}

func milli(t *testing.T, id string) int64 {
	t.Helper()
	ms, err := strconv.ParseInt(strings.ReplaceAll(id, "-", "")[:12], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}
