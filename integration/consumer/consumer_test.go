package consumer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/consumer"
	"github.com/postrider/postrider/consumer/parking"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/integration/internal/testdb"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/relay"
)

// stage is a consumer with inbox and parking on one database, whose effects are rows.
type stage struct {
	db      testdb.Database
	source  *stream
	letters *letters
	parking *parking.Table
}

// newStage runs a consumer whose effect fails when fail says so, and which change may change.
func newStage(t *testing.T, db testdb.Database, schedule []time.Duration, fail func(inbox.Message) error, change ...func(*consumer.Config)) *stage {
	t.Helper()
	s := &stage{db: db, source: newStream(), letters: &letters{}, parking: newParking(t, db)}
	id := "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
	switch db.Driver {
	case "mysql":
		id = "bigint AUTO_INCREMENT PRIMARY KEY"
	case "sqlite":
		id = "integer PRIMARY KEY AUTOINCREMENT"
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE effects (id "+id+", event_key varchar(99), event_id varchar(99))"); err != nil {
		t.Fatal(err)
	}
	in, err := inbox.New(inbox.Config{Dialect: db.Dialect, Consumer: billing})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Init(t.Context(), db.DB); err != nil {
		t.Fatal(err)
	}
	config := consumer.Config{
		Name: billing, Source: s.source, Sink: s.letters, Parking: s.parking, ParkingPoll: 5 * time.Millisecond, Workers: 4, Batch: 20,
		Policy: consumer.Policy{
			Retry: consumer.RetryPark, Schedule: relay.RetryPolicy{Schedule: schedule}, Permanent: consumer.EndDrop, Malformed: consumer.EndDrop,
		},
		Handler: in.Handler(db.DB, func(ctx context.Context, tx *sql.Tx, fresh []inbox.Message) error {
			for _, m := range fresh {
				if err := fail(m); err != nil {
					return err
				}
				insert := fmt.Sprintf("INSERT INTO effects (event_key, event_id) VALUES ('%s', '%s')", m.Key, m.EventID())
				if _, err := tx.ExecContext(ctx, insert); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	for _, c := range change {
		c(&config)
	}
	c, err := consumer.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// applied returns the effects of a key in their order; of all keys for "%".
func (s *stage) applied(t *testing.T, key string) (ids []string) {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), fmt.Sprintf("SELECT event_id FROM effects WHERE event_key LIKE '%s' ORDER BY id", key))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestAPoisonMessageParksItsKeyOnlyUntilItIsCured(t *testing.T) {
	const keys, each = 1000, 5
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		var cured atomic.Bool
		s := newStage(t, db, []time.Duration{50 * time.Millisecond}, func(m inbox.Message) error {
			if m.EventID() == "k0-0" && !cured.Load() {
				return errors.New("poison")
			}
			return nil
		})
		var want []string
		for i := range each {
			for k := range keys {
				s.source.send(fmt.Sprint("k", k), fmt.Sprintf("k%d-%d", k, i))
			}
			want = append(want, fmt.Sprintf("k0-%d", i))
		}
		await.True(t, time.Minute, "everything is acknowledged", func() bool { return s.source.unfinished() == 0 })
		if n := len(s.applied(t, "%")); n != (keys-1)*each {
			t.Errorf("%d effects, want those of the 999 other keys", n)
		}
		list, err := s.parking.List(t.Context(), billing, 10)
		if err != nil || len(list) != 1 || list[0].Key != "k0" || list[0].Messages != each {
			t.Errorf("parked %+v, %v", list, err)
		}
		await.True(t, time.Minute, "the poison is tried beyond its schedule", func() bool {
			list, err := s.parking.List(t.Context(), billing, 10)
			return err == nil && len(list) == 1 && list[0].Attempts > 3
		})
		cured.Store(true)
		await.True(t, time.Minute, "the key is applied", func() bool { return len(s.applied(t, "k0")) == each })
		s.source.send("k0", "last")
		await.True(t, time.Minute, "the key has rejoined", func() bool { return len(s.applied(t, "k0")) == each+1 })
		if got := s.applied(t, "k0"); !slices.Equal(got, append(want, "last")) {
			t.Errorf("applied %v", got)
		}
		if n := len(s.applied(t, "%")); n != keys*each+1 {
			t.Errorf("%d effects in all", n)
		}
	})
}

func TestAParkedMessageThatCanNeverBeAppliedLeavesAndTheRestGoesOn(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		var hopeless atomic.Bool
		s := newStage(t, db, []time.Duration{20 * time.Millisecond}, func(m inbox.Message) error {
			switch {
			case m.EventID() != "1":
				return nil
			case hopeless.Load():
				return inbox.Permanent(errors.New("hopeless"))
			default:
				return errors.New("poison")
			}
		})
		for _, id := range []string{"0", "1", "2", "3"} {
			s.source.send("k", id)
		}
		await.True(t, time.Minute, "everything is acknowledged", func() bool { return s.source.unfinished() == 0 })
		hopeless.Store(true)
		await.True(t, time.Minute, "the key goes on", func() bool { return len(s.applied(t, "k")) == 3 })
		if got := s.applied(t, "k"); !slices.Equal(got, []string{"0", "2", "3"}) {
			t.Errorf("applied %v", got)
		}
	})
}

// poisonStage has four messages of one key, the second of which fails and parks its key.
func poisonStage(t *testing.T, db testdb.Database, change ...func(*consumer.Config)) (*stage, parking.Parked) {
	t.Helper()
	s := newStage(t, db, []time.Duration{time.Hour}, func(m inbox.Message) error {
		if m.EventID() == "1" {
			return errors.New("poison")
		}
		return nil
	}, change...)
	for _, id := range []string{"0", "1", "2", "3"} {
		s.source.send("k", id)
	}
	await.True(t, time.Minute, "everything is acknowledged", func() bool { return s.source.unfinished() == 0 })
	list, err := s.parking.List(t.Context(), billing, 10)
	if err != nil || len(list) != 1 || list[0].EventID != "1" {
		t.Fatalf("parked %+v, %v", list, err)
	}
	return s, list[0]
}

func (s *stage) giveUp(t *testing.T, id int64) {
	t.Helper()
	if err := s.parking.GiveUp(t.Context(), id, "ann", "nobody needs it"); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) wantTheRest(t *testing.T) {
	t.Helper()
	await.True(t, time.Minute, "the key goes on", func() bool { return len(s.applied(t, "k")) == 3 })
	if got := s.applied(t, "k"); !slices.Equal(got, []string{"0", "2", "3"}) {
		t.Errorf("applied %v", got)
	}
	await.True(t, time.Minute, "the key rejoins", func() bool {
		list, err := s.parking.List(t.Context(), billing, 10)
		return err == nil && len(list) == 0
	})
}

func TestAMessageThatPeopleGiveUpBecomesADeadLetterAndTheRestGoesOn(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		s, parked := poisonStage(t, db)
		s.giveUp(t, parked.ID)
		s.wantTheRest(t)
		taken := s.letters.all()
		if len(taken) != 1 {
			t.Fatalf("dead letters %+v", taken)
		}
		headers := map[string]string{}
		for _, h := range taken[0].Headers {
			headers[h.Name] = h.Value
		}
		for name, want := range map[string]string{
			"X-Event-Id": "1", "X-Event-Type": "Made", consumer.HeaderOriginTopic: "orders", consumer.HeaderOriginOffset: "2",
			consumer.HeaderFailureConsumer: billing, consumer.HeaderFailureClass: "retry", consumer.HeaderFailureAttempts: "1",
			consumer.HeaderFailureFirstAt: parked.FirstFailedAt.Format("2006-01-02T15:04:05.000Z"),
		} {
			if headers[name] != want {
				t.Errorf("header %s is %q, want %q", name, headers[name], want)
			}
		}
		if text := headers[consumer.HeaderFailureMessage]; !strings.HasPrefix(text, "given up by ann: nobody needs it; its last error: ") ||
			!strings.Contains(text, "poison") {
			t.Errorf("error %q", text)
		}
		if taken[0].Topic != "orders.dlt" || taken[0].Key != "k" || string(taken[0].Payload) != "1" {
			t.Errorf("dead letter %+v", taken[0])
		}
	})
}

func TestAMessageThatWasGivenUpStaysUntilItsDeadLetterIsWritten(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		s, parked := poisonStage(t, db)
		s.letters.refuse(errors.New("no such topic"))
		s.giveUp(t, parked.ID)
		for range 3 { // tries do not make the error longer
			await.True(t, time.Minute, "the dead letter is refused", func() bool {
				list, err := s.parking.List(t.Context(), billing, 10)
				return err == nil && len(list) == 1 && !list[0].Claimed && list[0].DueSeconds > 30
			})
			p, messages, err := s.parking.Show(t.Context(), parked.ID, 10)
			if err != nil || len(messages) != 3 || messages[0].GivenUp == nil || messages[1].GivenUp != nil {
				t.Fatalf("messages %+v, %v", messages, err)
			}
			got := [3]any{p.Error, p.Attempts, p.LetterError}
			if want := [3]any{parked.Error, parked.Attempts, "orders.dlt: no such topic"}; got != want {
				t.Errorf("parked with %v, want %v", got, want)
			}
			if err := s.parking.Retry(t.Context(), parked.ID); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.applied(t, "k"); !slices.Equal(got, []string{"0"}) {
			t.Errorf("applied %v before the dead letter was written", got)
		}
		s.letters.refuse(nil)
		await.True(t, time.Minute, "the dead letter is written", func() bool {
			err := s.parking.Retry(t.Context(), parked.ID)
			return errors.Is(err, parking.ErrNotParked) && len(s.letters.all()) == 1
		})
		s.wantTheRest(t)
	})
}

func TestAMessageThatWasGivenUpIsDroppedWhereThePolicySaysSo(t *testing.T) {
	testdb.Each(t, func(t *testing.T, db testdb.Database) {
		var dropped atomic.Int32
		s, parked := poisonStage(t, db, func(c *consumer.Config) {
			c.Policy.Exhausted = consumer.EndDrop
			c.Hooks.Dropped = func(inbox.Message, error) { dropped.Add(1) }
		})
		s.giveUp(t, parked.ID)
		s.wantTheRest(t)
		if dropped.Load() != 1 || len(s.letters.all()) != 0 {
			t.Errorf("%d dropped, dead letters %+v", dropped.Load(), s.letters.all())
		}
	})
}

// mortal is a parking that is cut off before it settles for the first time what was given up.
type mortal struct {
	consumer.Parking
	died atomic.Bool
}

func (m *mortal) Settle(ctx context.Context, k *consumer.ParkedKey, done int, next *consumer.ParkedFailure) (bool, error) {
	if k.Messages[0].GivenUp != nil && m.died.CompareAndSwap(false, true) {
		return false, errors.New("cut off")
	}
	return m.Parking.Settle(ctx, k, done, next)
}

func TestAConsumerThatDiesAfterTheDeadLetterOfWhatWasGivenUp(t *testing.T) {
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		m := &mortal{}
		s, parked := poisonStage(t, db, func(c *consumer.Config) {
			m.Parking = c.Parking
			c.Parking, c.ParkingLease = m, 2*time.Second
		})
		s.giveUp(t, parked.ID)
		s.wantTheRest(t)
		taken := s.letters.all()
		if !m.died.Load() || len(taken) != 2 || taken[0].EventID != taken[1].EventID {
			t.Errorf("dead letters %+v, want one twice, so that a broker that tells duplicates has it once", taken)
		}
	})
}

// late is a parking whose claims take long to come.
type late struct {
	consumer.Parking
	claimed atomic.Pointer[time.Time]
}

func (l *late) Claim(ctx context.Context, name string, lease time.Duration, limit int) (*consumer.ParkedKey, error) {
	k, err := l.Parking.Claim(ctx, name, lease, limit)
	if now := time.Now(); k != nil {
		l.claimed.Store(&now)
		<-time.After(100 * time.Millisecond)
	}
	return k, err
}

func TestNoParkedMessageIsHandledBeyondTheClaim(t *testing.T) {
	l := &late{}
	var beyond atomic.Int64
	s, parked := poisonStage(t, testdb.SQLite(t), func(c *consumer.Config) {
		l.Parking, c.Parking = c.Parking, l
		handle := c.Handler
		c.Handler = func(ctx context.Context, batch []inbox.Message) []inbox.Result {
			if deadline, ok := ctx.Deadline(); ok {
				beyond.Store(int64(deadline.Sub(l.claimed.Load().Add(c.ParkingLease))))
			}
			return handle(ctx, batch)
		}
		c.ParkingLease = time.Minute
	})
	if err := s.parking.Retry(t.Context(), parked.ID); err != nil {
		t.Fatal(err)
	}
	await.True(t, time.Minute, "the key is tried", func() bool { return beyond.Load() != 0 })
	if d := time.Duration(beyond.Load()); d > 0 {
		t.Errorf("the handler may work %v longer than the claim is held", d)
	}
}

// Keys are parked and rejoin all the time while their messages keep coming.
func TestRejoiningKeysKeepTheirOrder(t *testing.T) {
	const messages, keys = 600, 3
	testdb.All(t, func(t *testing.T, db testdb.Database) {
		s := newStage(t, db, []time.Duration{time.Millisecond}, func(inbox.Message) error {
			if rand.IntN(5) == 0 {
				return errors.New("bad luck")
			}
			return nil
		})
		want := map[string][]string{}
		for i := range messages {
			key := fmt.Sprint("k", i%keys)
			s.source.send(key, fmt.Sprint(i))
			want[key] = append(want[key], fmt.Sprint(i))
			time.Sleep(time.Millisecond) // a pace, so that they come while their key is parked, and while it rejoins
		}
		await.True(t, 2*time.Minute, "everything is applied", func() bool { return len(s.applied(t, "%")) >= messages })
		for key, ids := range want {
			if got := s.applied(t, key); !slices.Equal(got, ids) {
				t.Errorf("key %s: applied %v, want %v", key, got, ids)
			}
		}
	})
}
