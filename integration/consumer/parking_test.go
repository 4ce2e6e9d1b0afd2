package consumer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumer/parking"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/internal/await"
)

const billing = "billing"

var busy = consumer.ParkedFailure{Err: "busy", Class: inbox.ClassRetry, Attempts: 1, FirstAt: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)}

func park(t *testing.T, p *parking.Table, key string, f consumer.ParkedFailure, messages ...inbox.Message) {
	t.Helper()
	if err := p.Park(t.Context(), billing, key, messages, f); err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, p *parking.Table, lease time.Duration) *consumer.ParkedKey {
	t.Helper()
	k, err := p.Claim(t.Context(), billing, lease, 10)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func wantIDs(t *testing.T, k *consumer.ParkedKey, want ...string) {
	t.Helper()
	if k == nil {
		t.Fatalf("no key is due, want one with %v", want)
	}
	var got []string
	for _, m := range k.Messages {
		got = append(got, m.Message.EventID())
	}
	if !slices.Equal(got, want) {
		t.Errorf("messages %v, want %v", got, want)
	}
}

func TestParkedMessagesComeBackAsTheyWere(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p := newParking(t, db)
		key := "orders\x00\xff\x00long" + string(make([]byte, 5000))
		odd := message("\xffkey", "1", 1)
		odd.Partition, odd.At = "3", time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
		odd.Headers = append(odd.Headers, inbox.Header{Name: "odd", Value: "\x00\xff'\\u0000 <é>"}, inbox.Header{Name: "odd", Value: ""})
		odd.Payload = []byte("{ \"a\":1e400,  \"a\": \x00\xff }")
		bare := inbox.Message{Topic: "orders", Coordinates: "memory:2", Payload: []byte{}}
		park(t, p, key, busy, odd, bare)
		if parked, err := p.Parked(t.Context(), billing, []string{"other", key}); err != nil || !slices.Equal(parked, []string{key}) {
			t.Errorf("parked %q, %v", parked, err)
		}
		if parked, err := p.Parked(t.Context(), "shipping", []string{key}); err != nil || len(parked) != 0 {
			t.Errorf("parked %q for another consumer, %v", parked, err)
		}
		k := claim(t, p, time.Minute)
		if k == nil || len(k.Messages) != 2 || k.Key != key {
			t.Fatalf("claimed %+v", k)
		}
		if !reflect.DeepEqual(k.Messages[0].Message, odd) || !reflect.DeepEqual(k.Messages[1].Message, bare) {
			t.Errorf("got  %+v\nwant %+v, %+v", k.Messages, odd, bare)
		}
		if f := k.Failure; f != busy {
			t.Errorf("failure %+v, want %+v", f, busy)
		}
	})
}

func TestAParkedKeyKeepsItsOrderAndRejoinsWhenNothingIsLeft(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p := newParking(t, db)
		ctx := t.Context()
		if stored, err := p.Append(ctx, billing, "k", []inbox.Message{message("k", "0", 0)}); stored || err != nil {
			t.Errorf("stored %v behind a key that is not parked, %v", stored, err)
		}
		park(t, p, "k", busy, message("k", "1", 1), message("k", "2", 2))
		for range 2 { // the broker delivers again what it had no acknowledgement of
			if stored, err := p.Append(ctx, billing, "k", []inbox.Message{message("k", "2", 2), message("k", "3", 3)}); !stored || err != nil {
				t.Errorf("stored %v, %v", stored, err)
			}
		}
		park(t, p, "k", consumer.ParkedFailure{After: time.Hour}, message("k", "4", 4))
		k := claim(t, p, time.Minute)
		wantIDs(t, k, "1", "2", "3", "4")
		if other := claim(t, p, time.Minute); other != nil {
			t.Errorf("claimed twice: %+v", other)
		}
		failed := consumer.ParkedFailure{Err: "busy again", Class: inbox.ClassRetry, Attempts: 2, FirstAt: busy.FirstAt}
		if rejoined, err := p.Settle(ctx, k, 1, &failed); rejoined || err != nil {
			t.Errorf("rejoined %v, %v", rejoined, err)
		}
		k = claim(t, p, time.Minute)
		wantIDs(t, k, "2", "3", "4")
		if k.Failure != failed {
			t.Errorf("failure %+v", k.Failure)
		}
		if stored, err := p.Append(ctx, billing, "k", []inbox.Message{message("k", "5", 5)}); !stored || err != nil {
			t.Errorf("stored %v while the key is tried, %v", stored, err)
		}
		if rejoined, err := p.Settle(ctx, k, 3, nil); rejoined || err != nil {
			t.Errorf("rejoined %v although a message came meanwhile, %v", rejoined, err)
		}
		k = claim(t, p, time.Minute)
		wantIDs(t, k, "5")
		if rejoined, err := p.Settle(ctx, k, 1, nil); !rejoined || err != nil {
			t.Errorf("rejoined %v, %v", rejoined, err)
		}
		if stored, err := p.Append(ctx, billing, "k", []inbox.Message{message("k", "6", 6)}); stored || err != nil {
			t.Errorf("stored %v after the key has rejoined, %v", stored, err)
		}
	})
}

func TestAStaleWorkerRemovesNothing(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p := newParking(t, db)
		park(t, p, "k", busy, message("k", "1", 1), message("k", "2", 2))
		stale := claim(t, p, 10*time.Millisecond)
		var k *consumer.ParkedKey
		await.True(t, 10*time.Second, "the claim runs out", func() bool {
			k = claim(t, p, time.Minute)
			return k != nil
		})
		if _, err := p.Settle(t.Context(), stale, 2, nil); !errors.Is(err, consumer.ErrClaimLost) {
			t.Errorf("settled with a claim that was lost: %v", err)
		}
		if rejoined, err := p.Settle(t.Context(), k, 0, &busy); rejoined || err != nil {
			t.Errorf("rejoined %v, %v", rejoined, err)
		}
		wantIDs(t, claim(t, p, time.Minute), "1", "2")
	})
}

func TestPeopleSeeWhatIsParkedAndRetryItNow(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p := newParking(t, db)
		later := busy
		later.After = time.Hour
		park(t, p, "orders\x00k", later, message("k", "1", 1), message("k", "2", 2))
		if k := claim(t, p, time.Minute); k != nil {
			t.Fatalf("claimed before it is due: %+v", k)
		}
		list, err := p.List(t.Context(), billing, 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		got := list[0]
		if got.Topic != "orders" || got.Key != "k" || got.Messages != 2 || got.Attempts != 1 || got.Error != "busy" || got.Claimed ||
			got.DueSeconds < 3500 || got.DueSeconds > 3600 || !got.FirstFailedAt.Equal(busy.FirstAt) || time.Since(got.At).Abs() > time.Minute {
			t.Errorf("%+v", got)
		}
		for _, want := range []bool{true, false} {
			if due, err := p.Retry(t.Context(), billing, got.ID); due != want || err != nil {
				t.Errorf("retried %v, %v; want %v", due, err, want)
			}
			if want {
				wantIDs(t, claim(t, p, time.Minute), "1", "2")
			}
		}
		if list, err := p.List(t.Context(), billing, 10); err != nil || !list[0].Claimed {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestOfSeveralProcessesEachClaimsAnotherKey(t *testing.T) {
	const keys = 40
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p := newParking(t, db)
		for i := range keys {
			park(t, p, fmt.Sprint(i), busy, message("k", fmt.Sprint(i), i))
		}
		claims := make(chan *consumer.ParkedKey, keys)
		for range 4 {
			go func() {
				for {
					k, err := p.Claim(t.Context(), billing, time.Minute, 10)
					if err != nil {
						t.Error(err)
					}
					claims <- k
					if k == nil {
						return
					}
				}
			}()
		}
		seen := map[string]bool{}
		for ended := 0; ended < 4; {
			k := <-claims
			switch {
			case k == nil:
				ended++
			case seen[k.Key]:
				t.Errorf("key %s was claimed twice", k.Key)
			default:
				seen[k.Key] = true
			}
		}
		if len(seen) != keys {
			t.Errorf("%d keys were claimed, want %d", len(seen), keys)
		}
	})
}
