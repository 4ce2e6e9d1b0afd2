package mainjob_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
)

// Every comparison with time is made by the database's clock: relays whose clocks are five minutes behind or ahead of it
// deliver what is scheduled when the database says so, and take over the shards of a dead relay as soon as ever.
func TestClocksOfRelaysDoNotMatter(t *testing.T) {
	for _, offset := range []string{"+5m", "-5m"} {
		t.Run(offset, func(t *testing.T) {
			database := servers.Launch(t, "postgres", "LD_PRELOAD="+fakeTime(t), "FAKETIME="+offset, "FAKETIME_DONT_FAKE_MONOTONIC=1")
			s := stageOn(t, fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", database.Port()),
				servers.Address(t, "POSTRIDER_TEST_KAFKA"), nil)
			if ahead := s.count("SELECT extract(epoch FROM now() - $1::timestamptz)::int", time.Now()); ahead > -200 && ahead < 200 {
				t.Fatalf("the database's clock is only %d s ahead", ahead)
			}
			relays := s.startReady(t, "one", "two", "three")

			const perBatch = 500
			s.execute(t, addAt, perBatch, 0)
			s.execute(t, addAt, perBatch, 3)
			s.awaitPublished(t, perBatch)
			relays[0].Signal(t, syscall.SIGKILL)
			s.execute(t, addAt, perBatch, 0)
			await.True(t, 10*lease, "all events are published, also those of the dead relay's shards", func() bool {
				return s.inState("PUBLISHED") == 3*perBatch
			})
			if n := s.count("SELECT count(*) FROM outbox_events WHERE published_at < next_attempt_at"); n != 0 {
				t.Errorf("%d events were published before their time", n)
			}
			s.checkNoAttempts(t)
		})
	}
}

// addAt adds $1 events of as many keys that are due in $2 seconds.
const addAt = `INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload, next_attempt_at)
	SELECT 'wallet', 'w-' || n, 'Debited', '{}', now() + $2::int * interval '1 second' FROM generate_series(1, $1::int) n`

// fakeTime is a library that shifts the clock of a process that loads it.
func fakeTime(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		t.Fatalf("libfaketime is not installed: scripts/services install does it (%v)", err)
	}
	return found[0]
}
