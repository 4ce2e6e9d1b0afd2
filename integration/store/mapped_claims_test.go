package store

import (
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
	"github.com/postrider/postrider/storetest"
)

func TestMappedClaims(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) mapped{
		"POSTRIDER_TEST_POSTGRES":   func(t testing.TB) mapped { return full(t, "POSTRIDER_TEST_POSTGRES") },
		"POSTRIDER_TEST_POSTGRES18": func(t testing.TB) mapped { return full(t, "POSTRIDER_TEST_POSTGRES18") },
		"mariadb":                   func(t testing.TB) mapped { return fullMySQL(t, "POSTRIDER_TEST_MARIADB") },
		"mysql":                     func(t testing.TB) mapped { return fullMySQL(t, "POSTRIDER_TEST_MYSQL") },
		"outbox-events/mariadb":     func(t testing.TB) mapped { return outboxEvents(t, "POSTRIDER_TEST_MARIADB") },
		"outbox-events/mysql":       func(t testing.TB) mapped { return outboxEvents(t, "POSTRIDER_TEST_MYSQL") },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.RunClaims(t, func(t *testing.T) storetest.Harness { return open(t).harness(t) })
		})
	}
}

// outboxEvents is the table of the preset outbox-events, with defaults for what the suite leaves out.
func outboxEvents(t testing.TB, server string) mapped {
	d := newMySQL(t, server)
	d.create(t, "../presets/testdata/outbox-events.sql")
	execute(t, d.db, `ALTER TABLE outbox_events MODIFY event_id CHAR(36) NOT NULL DEFAULT (uuid()),
		MODIFY next_attempt_at DATETIME NOT NULL DEFAULT (utc_timestamp()), MODIFY created_at DATETIME NOT NULL DEFAULT (utc_timestamp())`)
	p, _ := sqlstore.FindPreset(d.dialect, "outbox-events")
	m := mapByPreset(d.named(p.Table), p)
	m.id, m.lacks = "id", []storetest.Feature{storetest.Columns, storetest.Schedule, storetest.Strict}
	m.names = map[string]string{"next_attempt_at": "next_attempt_at"}
	for _, name := range []string{"event_id", "aggregate_type", "aggregate_id", "event_type", "payload"} {
		m.names[name] = name
	}
	return m
}

// TestWhatTheirOwnWorkersClaimIsRespected has an old worker of the application's claim rows in the same columns.
func TestWhatTheirOwnWorkersClaimIsRespected(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		d.create(t, "../presets/testdata/outbox-events.sql")
		p, _ := sqlstore.FindPreset(d.dialect, "outbox-events")
		m := mapByPreset(d.named(p.Table), p)
		for _, row := range [][2]string{
			{"live", "'PROCESSING', '6f1c1f9e-8b1a-4d53-9a53-0123456789ff', utc_timestamp() + INTERVAL 1 HOUR"},
			{"dead", "'PROCESSING', '6f1c1f9e-8b1a-4d53-9a53-0123456789ff', utc_timestamp() - INTERVAL 2 SECOND"},
			{"dead", "'PROCESSING', '6f1c1f9e-8b1a-4d53-9a53-0123456789aa', utc_timestamp() - INTERVAL 2 SECOND"},
			{"unclaimed", "'PROCESSING', NULL, NULL"},
			{"waits", "'PENDING', NULL, NULL"},
		} {
			execute(t, m.db, `INSERT INTO outbox_events (event_id, aggregate_type, aggregate_id, event_type, payload, next_attempt_at, created_at, status, claim_token, processing_until)
				VALUES (uuid(), 'order', '`+row[0]+`', 'E', '{}', utc_timestamp(), utc_timestamp(), `+row[1]+")")
		}
		s := m.init(t)
		r := rowClaimer(t, s, "a", time.Hour)
		events, err := r.Read(t.Context(), everything(10))
		if err != nil || len(events) != 3 {
			t.Fatalf("claimed %+v, %v", events, err)
		}
		a := relay.Member{Name: "main", ID: "a"}
		for _, e := range events {
			if e.Malformed != nil {
				t.Errorf("their token counts as ours: %v", e.Malformed)
			}
			one := relay.Settlement{ID: e.ID, State: postrider.StateDead, RetryCount: 1, Error: "no"}
			if e.AggregateID == "dead" {
				one = relay.Settlement{ID: e.ID, State: postrider.StatePublished}
			}
			if ids, err := r.Settle(t.Context(), a, []relay.Settlement{one}); err != nil || len(ids) != 1 {
				t.Errorf("settled %v, %v", ids, err)
			}
		}
		m.rows(t, "SELECT concat_ws(' ', aggregate_id, status, claim_token IS NULL, retry_count) FROM outbox_events ORDER BY id",
			"live PROCESSING 0 0", "dead PUBLISHED 1 0", "dead PUBLISHED 1 0", "unclaimed PROCESSING 1 0", "waits DEAD 1 1")
		m.finds(t, "warning", "1 or more events are PROCESSING without a time at which the claim runs out, so that no relay takes them")
		if n, err := s.Redrive(t.Context(), operator.Filter{}, operator.Action{Who: "me"}); n != 1 || err != nil {
			t.Errorf("redrove %d, %v", n, err)
		}
	})
}

func TestWhatTheirOwnWorkersClaimIsRespectedInPostgres(t *testing.T) {
	m := full(t, "POSTRIDER_TEST_POSTGRES")
	execute(t, m.db, `INSERT INTO journal (entity, entity_no, kind, body, state, token, busy_till)
		SELECT 'order', who, 'E', '{}', 'BUSY', '6f1c1f9e-8b1a-4d53-9a53-0123456789' || tail, now() + till * interval '1 hour'
		FROM (VALUES ('live', 'ff', 1), ('dead', 'ff', -1), ('dead', 'aa', -1), ('unclaimed', NULL, -1)) AS v(who, tail, till)`)
	events, err := rowClaimer(t, m.init(t), "a", time.Hour).Read(t.Context(), everything(10))
	if err != nil || len(events) != 2 {
		t.Fatalf("claimed %+v, %v", events, err)
	}
	for _, e := range events {
		if e.AggregateID != "dead" || e.Malformed != nil {
			t.Errorf("claimed %+v", e)
		}
	}
	execute(t, m.db, "UPDATE journal SET busy_till = busy_till - interval '1 hour'")
	m.finds(t, "warning", "1 or more events are PROCESSING without a claim token although their time ran out more than an hour ago, so that no relay with claim: row takes them over "+
		"(look at one with `postrider events show 4` and start a relay with claim: shard, or correct them by SQL)")
	execute(t, m.db, "UPDATE journal SET busy_till = NULL WHERE token IS NULL")
	m.finds(t, "warning", "1 or more events are PROCESSING without a time at which the claim runs out, so that no relay takes them")
}
