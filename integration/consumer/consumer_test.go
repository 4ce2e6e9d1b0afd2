package consumer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
	parking *parking.Table
}

// newStage runs a consumer whose effect fails when fail says so.
func newStage(t *testing.T, db testdb.Database, schedule []time.Duration, fail func(inbox.Message) error) *stage {
	t.Helper()
	s := &stage{db: db, source: newStream(), parking: newParking(t, db)}
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
	c, err := consumer.New(consumer.Config{
		Name: billing, Source: s.source, Parking: s.parking, ParkingPoll: 5 * time.Millisecond, Workers: 4, Batch: 20,
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
	})
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
