package outbox

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/testdb"
)

// eachMySQL runs test on MariaDB and on MySQL; parameters are the driver's.
func eachMySQL(t *testing.T, parameters url.Values, test func(t *testing.T, db testdb.Database)) {
	for _, server := range []string{"POSTRIDER_TEST_MARIADB", "POSTRIDER_TEST_MYSQL"} {
		t.Run(server, func(t *testing.T) { test(t, testdb.MySQL(t, server, parameters)) })
	}
}

// A driver that counts the rows that a statement has found makes a dropped event look like one that was written.
func TestDropsAreReportedToClientsThatCountFoundRows(t *testing.T) {
	eachMySQL(t, url.Values{"clientFoundRows": {"true"}}, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		tx := db.Begin(t)
		deduped := event("1")
		deduped.DedupKey = "k"
		added := add(t, outbox, tx, deduped, deduped, event("2"))
		if added[0].Dropped || !added[1].Dropped || added[2].Dropped {
			t.Errorf("added %+v, want the second one dropped", added)
		}
		if rows := written(t, tx); len(rows) != 2 {
			t.Errorf("%d rows, want 2", len(rows))
		}
	})
}

func TestKeysThatDifferInCaseOrSpacesAreDifferent(t *testing.T) {
	eachMySQL(t, nil, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		tx := db.Begin(t)
		for _, key := range []string{"a", "A", "a ", "á", strings.Repeat("x", postrider.MaxField)} {
			deduped := event(key)
			deduped.DedupKey = key
			if added := add(t, outbox, tx, deduped); added[0].Dropped {
				t.Errorf("%q was taken for another key", key)
			}
		}
		var found int
		if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM outbox_events WHERE aggregate_id = 'a'").Scan(&found); err != nil || found != 1 {
			t.Errorf("%d events have the key 'a', %v", found, err)
		}
	})
}

// The statement of an Add stays below what MariaDB takes by default; a payload that is larger than that fails alone.
func TestLargePayloads(t *testing.T) {
	eachMySQL(t, nil, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{MaxPayload: 64 << 20})
		large := events(5)
		for i := range large {
			large[i].Payload = []byte(`"` + strings.Repeat("é", 2<<20) + `"`)
		}
		tx := db.Begin(t)
		for i, a := range add(t, outbox, tx, large...) {
			if got := payloadOf(t, tx, a); !bytes.Equal(got, large[i].Payload) {
				t.Errorf("payload %d has %d bytes, want %d", i, len(got), len(large[i].Payload))
			}
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		tooLarge := event("1")
		tooLarge.Payload = []byte(`"` + strings.Repeat("x", 64<<20-2) + `"`)
		if _, err := outbox.Add(t.Context(), db.Begin(t), tooLarge); err == nil {
			t.Error("a payload above max_allowed_packet was taken")
		}
	})
}

func TestPayloadNestedTooDeepIsRefusedByName(t *testing.T) {
	eachMySQL(t, nil, func(t *testing.T, db testdb.Database) {
		outbox := db.InitOutbox(t, postrider.Config{})
		deep := event("1")
		deep.Payload = []byte(strings.Repeat("[", 101) + strings.Repeat("]", 101))
		_, err := outbox.Add(t.Context(), db.Begin(t), deep)
		if err == nil || !strings.Contains(err.Error(), "payload") && !strings.Contains(err.Error(), "depth") {
			t.Errorf("got %v, want an error that tells what is wrong", err)
		}
	})
}
