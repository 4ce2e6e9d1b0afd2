package store

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

func TestBinaryPayloadsKeepTheirBytes(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{Payload: sqlstore.PayloadBinary})
		want := make([]byte, 0, 512)
		for b := range 256 {
			want = append(want, byte(b), 0xff)
		}
		parameter := map[string]string{"postgres": "$1", "sqlite": "?1", "mysql": "?"}[d.dialect.String()]
		execute(t, d.db, "INSERT INTO "+d.table+" (aggregate_type, aggregate_id, event_type, payload) VALUES ('a', 'b', 'c', "+parameter+")", want)
		if got := readSome(t, s, everything(1))[0].Payload; !bytes.Equal(got, want) {
			t.Errorf("read %x", got)
		}
		if row, err := s.Event(t.Context(), "1"); err != nil || !bytes.Equal(row.Payload, want) {
			t.Errorf("event shows %x, %v", row.Payload, err)
		}
		for _, f := range s.Verify(t.Context()) {
			if f.Level != operator.LevelOK {
				t.Errorf("%+v", f)
			}
		}
	})
}

func TestDeletePublishedDeletesWhatIsPublishedAndProven(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{DeletePublished: true})
		a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
		leases := ownAll(t, s, a)
		d.addMany(t, 3)
		events := readSome(t, s, everything(3))
		settle := func(e relay.Event, by relay.Member, state postrider.State, lease relay.Lease) int {
			t.Helper()
			ids, err := s.Settle(t.Context(), by, []relay.Settlement{{ID: e.ID, Lease: lease, State: state, Error: "no"}})
			if err != nil {
				t.Fatal(err)
			}
			return len(ids)
		}
		stranger := a
		stranger.ID = "b"
		stale := leases[events[0].Shard]
		stale.Epoch--
		if settle(events[0], stranger, postrider.StatePublished, leases[events[0].Shard]) != 0 || settle(events[0], a, postrider.StatePublished, stale) != 0 {
			t.Error("an event was deleted without its lease")
		}
		settle(events[0], a, postrider.StatePending, leases[events[0].Shard])
		settle(events[1], a, postrider.StateDead, leases[events[1].Shard])
		if n := settle(events[0], a, postrider.StatePublished, leases[events[0].Shard]); n != 1 {
			t.Errorf("%d events were settled, want 1", n)
		}
		if n := settle(events[1], a, postrider.StatePublished, leases[events[1].Shard]); n != 0 {
			t.Errorf("a dead event was deleted")
		}
		left, err := s.Events(t.Context(), operator.Filter{})
		if err != nil || len(left) != 2 || left[0].ID != events[1].ID || left[1].ID != events[2].ID {
			t.Errorf("events left: %+v, %v", left, err)
		}
		if attempts, err := s.Attempts(t.Context(), events[0].ID); err != nil || len(attempts) != 0 {
			t.Errorf("attempts left: %v, %v", attempts, err)
		}
	})
}

func TestTheDatabaseRefusesRowsThatNoRelayCouldSend(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		for _, values := range []string{
			"'', 'b', 'c', '{}', 'PENDING', 0, NULL",
			"'a', '', 'c', '{}', 'PENDING', 0, NULL",
			"'a', 'b', '', '{}', 'PENDING', 0, NULL",
			"'a', 'b', 'c', '{', 'PENDING', 0, NULL",
			"'a', 'b', 'c', '{}', 'SENT', 0, NULL",
			"'a', 'b', 'c', '{}', 'PENDING', -1, NULL",
			"'a', 'b', 'c', '{}', 'PENDING', 0, '[]'",
		} {
			statement := "INSERT INTO " + d.table + " (aggregate_type, aggregate_id, event_type, payload, status, retry_count, headers) VALUES (" + values + ")"
			if _, err := d.db.ExecContext(t.Context(), statement); err == nil {
				t.Errorf("the table took %s", values)
			}
		}
	})
}

func TestSQLiteRefusesTimesThatDoNotCompare(t *testing.T) {
	d := newSQLite(t)
	d.store(t, sqlstore.Config{})
	for _, moment := range []string{"2026-01-01T00:00:00Z", "2026-01-01 00:00:00", "2026-01-01 00:00:00.000+02:00", "0", "soon"} {
		_, err := d.db.ExecContext(t.Context(), "INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload, next_attempt_at) VALUES ('a', 'b', 'c', '{}', ?1)", moment)
		if err == nil || !strings.Contains(err.Error(), "utc_with_milliseconds") {
			t.Errorf("next_attempt_at %q: %v", moment, err)
		}
	}
}
