package consumer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
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
		retry(t, p, got.ID)
		wantIDs(t, claim(t, p, time.Minute), "1", "2")
		if list, err := p.List(t.Context(), billing, 10); err != nil || !list[0].Claimed {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestAKeyIsTriedAgainAtOnceWhenPeopleAskMeanwhile(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p := newParking(t, db)
		later := busy
		later.After = time.Hour
		park(t, p, "k", busy, message("k", "1", 1), message("k", "2", 2))
		k := claim(t, p, time.Minute)
		last := k.Messages[1].ID
		for _, asked := range []bool{true, false} { // while it is being tried, and not
			if asked {
				retry(t, p, last) // any message of the key names it
			}
			settle(t, p, k, 0, later)
			if k = claim(t, p, time.Minute); (k != nil) != asked {
				t.Errorf("claimed %+v, want one due: %v", k, asked)
			}
		}
		if err := p.Retry(t.Context(), last+1); !errors.Is(err, parking.ErrNotParked) {
			t.Errorf("retried what is not parked: %v", err)
		}
	})
}

func retry(t *testing.T, p *parking.Table, id int64) {
	t.Helper()
	if err := p.Retry(t.Context(), id); err != nil {
		t.Error(err)
	}
}

func settle(t *testing.T, p *parking.Table, k *consumer.ParkedKey, done int, next consumer.ParkedFailure) {
	t.Helper()
	if _, err := p.Settle(t.Context(), k, done, &next); err != nil {
		t.Error(err)
	}
}

func TestPeopleSeeAllConsumersAndRetryAllKeys(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p := newParking(t, db)
		later := busy
		later.After = time.Hour
		park(t, p, "orders\x00a", later, message("a", "1", 1))
		if err := p.Park(t.Context(), "shipping", "\x002\x00memory:orders@2", []inbox.Message{message("", "2", 2)}, later); err != nil {
			t.Fatal(err)
		}
		park(t, p, "orders\x00b", later, message("b", "3", 3))
		for name, want := range map[string][]string{"": {"1", "2", "3"}, billing: {"1", "3"}, "shipping": {"2"}, "other": nil} {
			list, err := p.List(t.Context(), name, 10)
			var got []string
			for _, l := range list {
				got = append(got, l.EventID)
				if l.Topic != "orders" || l.Key != map[string]string{"1": "a", "2": "", "3": "b"}[l.EventID] {
					t.Errorf("topic %q, key %q of %s", l.Topic, l.Key, l.EventID)
				}
			}
			if slices.Sort(got); err != nil || !slices.Equal(got, want) {
				t.Errorf("consumer %q: parked %v, %v", name, got, err)
			}
		}
		if list, err := p.List(t.Context(), "", 2); err != nil || len(list) != 2 {
			t.Errorf("%+v, %v", list, err)
		}
		for _, all := range []struct {
			name string
			keys int64
		}{{"other", 0}, {billing, 2}, {"", 3}} {
			if n, err := p.RetryAll(t.Context(), all.name); n != all.keys || err != nil {
				t.Errorf("consumer %q: retried %d, %v", all.name, n, err)
			}
		}
		for range 2 {
			if claim(t, p, time.Minute) == nil {
				t.Error("a key is not due")
			}
		}
	})
}

// newAudit makes the tables of the inbox. What it returns reads the lines of the audit.
func newAudit(t *testing.T, db testdb.Database) func() []string {
	t.Helper()
	tables, err := inbox.NewTables(db.Dialect, "")
	if err == nil {
		err = tables.Init(t.Context(), db.DB)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() (lines []string) {
		rows, err := db.QueryContext(t.Context(), "SELECT who, action, reason, consumer, dedup_key FROM inbox_audit ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var who, action, reason, name, key string
			if err := rows.Scan(&who, &action, &reason, &name, &key); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, strings.Join([]string{who, action, reason, name, key}, "|"))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return lines
	}
}

func giveUp(t *testing.T, p *parking.Table, id int64) {
	t.Helper()
	if err := p.GiveUp(t.Context(), id, "ann", "it's \x00broken"); err != nil {
		t.Error(err)
	}
}

// givenUp tells which messages of a key are marked.
func givenUp(k *consumer.ParkedKey) (marks []bool) {
	for _, m := range k.Messages {
		if m.GivenUp != nil && *m.GivenUp != (consumer.GivenUp{By: "ann", Reason: "it's \uFFFDbroken"}) {
			panic(fmt.Sprintf("%+v", m.GivenUp))
		}
		marks = append(marks, m.GivenUp != nil)
	}
	return marks
}

func TestAMessageThatPeopleGiveUpIsMarkedAndItsKeyDue(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p, audit := newParking(t, db), newAudit(t, db)
		later := busy
		later.After = time.Hour
		odd := message("k", "\x00"+strings.Repeat("é", 300), 2)
		park(t, p, "orders\x00k", later, message("k", "1", 1), odd, message("k", "3", 3))
		list, err := p.List(t.Context(), billing, 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, id := range []int64{list[0].ID, list[0].ID, list[0].ID + 1} { // the first one twice
			giveUp(t, p, id)
		}
		shown, messages, err := p.Show(t.Context(), list[0].ID, 2)
		if err != nil || shown.GivenUp == nil || shown.GivenUp.By != "ann" || shown.Messages != 3 || len(messages) != 2 {
			t.Errorf("shown %+v, %d messages, %v", shown, len(messages), err)
		}
		k := claim(t, p, time.Minute)
		if k == nil || !slices.Equal(givenUp(k), []bool{true, true, false}) {
			t.Fatalf("claimed %+v", k)
		}
		one, two := "ann|give up|it's \uFFFDbroken|billing|1", "ann|give up|it's \uFFFDbroken|billing|\uFFFD"+strings.Repeat("é", 254)
		if lines := audit(); !slices.Equal(lines, []string{one, one, two}) {
			t.Errorf("audit %q", lines)
		}
	})
}

func TestGivingUpWhileAKeyIsBeingTried(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p, audit := newParking(t, db), newAudit(t, db)
		park(t, p, "k", busy, message("k", "1", 1), message("k", "2", 2), message("k", "3", 3))
		k := claim(t, p, time.Minute)
		later := busy
		later.After = time.Hour

		giveUp(t, p, k.Messages[0].ID)
		if other := claim(t, p, time.Minute); other != nil {
			t.Errorf("a claim that is held was taken: %+v", other)
		}
		settle(t, p, k, 0, later) // it has failed: the mark is looked at now and not in an hour
		if k = claim(t, p, time.Minute); k == nil || !slices.Equal(givenUp(k), []bool{true, false, false}) {
			t.Fatalf("claimed %+v", k)
		}
		settle(t, p, k, 0, later) // its dead letter was refused: it waits
		if other := claim(t, p, time.Minute); other != nil {
			t.Errorf("claimed %+v at once after it could not be ended", other)
		}
		retry(t, p, k.Messages[0].ID)
		k = claim(t, p, time.Minute)
		settle(t, p, k, 1, busy) // it was ended, or applied: its mark is gone with it
		if k = claim(t, p, time.Minute); k == nil || !slices.Equal(givenUp(k), []bool{false, false}) {
			t.Fatalf("claimed %+v", k)
		}
		giveUp(t, p, k.Messages[0].ID)
		settle(t, p, k, 1, busy) // applied meanwhile: the next one has no mark
		if k = claim(t, p, time.Minute); k == nil || !slices.Equal(givenUp(k), []bool{false}) {
			t.Fatalf("claimed %+v", k)
		}
		if lines := audit(); len(lines) != 2 {
			t.Errorf("audit %q", lines)
		}
	})
}

func TestWhatCannotBeGivenUp(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p := newParking(t, db)
		park(t, p, "k", busy, message("k", "1", 1), message("k", "2", 2))
		k := claim(t, p, time.Minute)
		if err := p.GiveUp(t.Context(), k.Messages[0].ID, "ann", "broken"); !errors.Is(err, parking.ErrNoTables) {
			t.Errorf("given up without an audit: %v", err)
		}
		if shown, _, err := p.Show(t.Context(), k.Messages[0].ID, 1); err != nil || shown.GivenUp != nil {
			t.Errorf("marked without an audit: %+v, %v", shown, err)
		}
		audit := newAudit(t, db)
		for _, action := range [][2]string{{"", "broken"}, {"ann", ""}, {strings.Repeat("x", 256), "broken"}} {
			if err := p.GiveUp(t.Context(), k.Messages[0].ID, action[0], action[1]); err == nil {
				t.Errorf("given up by %q because of %q", action[0], action[1])
			}
		}
		settle(t, p, k, 1, busy)
		if err := p.GiveUp(t.Context(), k.Messages[0].ID, "ann", "broken"); !errors.Is(err, parking.ErrNotParked) {
			t.Errorf("given up after it was applied: %v", err)
		}
		if _, _, err := p.Show(t.Context(), k.Messages[0].ID, 1); !errors.Is(err, parking.ErrNotParked) {
			t.Errorf("shown after it was applied: %v", err)
		}
		if k = claim(t, p, time.Minute); k == nil || !slices.Equal(givenUp(k), []bool{false}) || len(audit()) != 0 {
			t.Errorf("claimed %+v, audit %q", k, audit())
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

// A message is given up, with its line, or it is gone, whoever comes first.
func TestGivingUpWhatIsBeingApplied(t *testing.T) {
	const messages = 60
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		p, audit := newParking(t, db), newAudit(t, db)
		var all []inbox.Message
		for i := range messages {
			all = append(all, message("k", fmt.Sprint(i), i))
		}
		park(t, p, "k", consumer.ParkedFailure{}, all...)
		_, shown, err := p.Show(t.Context(), first(t, p), messages)
		if err != nil || len(shown) != messages {
			t.Fatalf("%d messages, %v", len(shown), err)
		}
		ended := make(chan int)
		go func() {
			given := 0
			for _, m := range shown {
				switch err := p.GiveUp(t.Context(), m.ID, "ann", "broken"); {
				case err == nil:
					given++
				case !errors.Is(err, parking.ErrNotParked):
					t.Error(err)
				}
			}
			ended <- given
		}()
		for _, m := range shown {
			var k *consumer.ParkedKey
			await.True(t, time.Minute, "the key is due", func() bool { // GiveUp may make it due a moment after a claim has read the clock
				k = claim(t, p, time.Minute)
				return k != nil
			})
			if k.Messages[0].ID != m.ID {
				t.Errorf("claimed message %d, want %d", k.Messages[0].ID, m.ID)
			}
			settle(t, p, k, 1, consumer.ParkedFailure{})
		}
		if given := <-ended; given != len(audit()) || given == 0 {
			t.Errorf("%d messages were given up, %d lines in the audit", given, len(audit()))
		}
	})
}

func first(t *testing.T, p *parking.Table) int64 {
	t.Helper()
	list, err := p.List(t.Context(), billing, 1)
	if err != nil || len(list) != 1 {
		t.Fatalf("parked %+v, %v", list, err)
	}
	return list[0].ID
}
