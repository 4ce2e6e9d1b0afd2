package redis

import (
	"crypto/rand"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func openFilter(t *testing.T, address string, keep time.Duration) *Filter {
	t.Helper()
	f, err := OpenFilter(Config{Addresses: []string{address}}, keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestFilterIsShared has one process know what another one has applied, for as long as it is kept.
func TestFilterIsShared(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			address := shared(t, kind)
			one, other := openFilter(t, address, time.Hour), openFilter(t, address, time.Hour)
			name := t.Name() + rand.Text()
			one.Applied(t.Context(), name, []string{"a", "c"})
			if got := other.Likely(t.Context(), name, []string{"a", "b", "c"}); !slices.Equal(got, []bool{true, false, true}) {
				t.Errorf("likely %v", got)
			}
			if got := other.Likely(t.Context(), name+"x", []string{"a"}); !slices.Equal(got, []bool{false}) {
				t.Errorf("likely %v for another consumer", got)
			}
			c := client(t, address)
			if ttl := c.PTTL(t.Context(), filterKey(name, "a")).Val(); ttl <= 0 || ttl > time.Hour {
				t.Errorf("a key is kept for %v, want an hour", ttl)
			}
		})
	}
}

// TestFilterWithoutAnswer says nothing, soon, and does not ask again with the next message.
func TestFilterWithoutAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var asked atomic.Int64
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
			asked.Add(1)
		}
	}()
	f := openFilter(t, l.Addr().String(), time.Hour)
	if got := f.Likely(t.Context(), "c", []string{"a"}); got != nil {
		t.Errorf("likely %v, want no answer", got)
	}
	first := asked.Load()
	if f.silent.Load() < time.Now().UnixNano() {
		t.Error("it will be asked by the next message")
	}
	f.silent.Store(time.Now().Add(time.Hour).UnixNano())
	f.Applied(t.Context(), "c", []string{"a"})
	if got := f.Likely(t.Context(), "c", []string{"a"}); got != nil || first == 0 || asked.Load() != first {
		t.Errorf("likely %v, %d connections and then %d, want no answer and one", got, first, asked.Load())
	}
}

func TestFilterRefusesNoTime(t *testing.T) {
	if _, err := OpenFilter(Config{Addresses: []string{"127.0.0.1:1"}}, 0); err == nil || !strings.Contains(err.Error(), "keeps keys for 0s") {
		t.Errorf("error %v", err)
	}
}
