package store

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/postrider/postrider/sqlstore"
)

// TestSQLitePlans looks at how SQLite would execute the statements, with no statistics and with misleading ones.
func TestSQLitePlans(t *testing.T) {
	d := newSQLite(t)
	d.store(t, sqlstore.Config{})
	for _, statistics := range []string{"none", "of an empty table", "of a table where everything is pending"} {
		switch statistics {
		case "of an empty table":
			execute(t, d.db, "ANALYZE")
		case "of a table where everything is pending":
			d.addMany(t, 10_000)
			execute(t, d.db, "ANALYZE")
			execute(t, d.db, "DELETE FROM outbox_events")
		}
		for file, want := range map[string][]string{
			"read":             {"ready (shard=?)", "waiting (shard=? AND next_attempt_at<?)", "blocking (aggregate_id=? AND id<?)", "PRIMARY KEY (rowid=?)"},
			"settle_published": {"PRIMARY KEY (rowid=?)"},
			"settle_deleted":   {"PRIMARY KEY (rowid=?)"},
			"settle_failed":    {"PRIMARY KEY (rowid=?)"},
			"counts":           {"ready", "waiting", "processing", "dead", "discarded"},
			"held_keys":        {"outbox_holds_key"},
			"tidy":             {"PRIMARY KEY (rowid>? AND rowid<?)", "PRIMARY KEY (rowid=?)"},
			"oldest":           {"ready (shard=?)", "waiting (shard=? AND next_attempt_at<?)", "failed (shard=?)", "PRIMARY KEY (rowid=?)"},
			"chunk":            {"PRIMARY KEY (rowid>?)", "PRIMARY KEY (rowid=?)"},
			"clean":            {"PRIMARY KEY (rowid>?)", "PRIMARY KEY (rowid=?)"},
		} {
			t.Run("statistics "+statistics+"/"+file, func(t *testing.T) {
				steps := explain(t, d, file)
				for _, step := range steps {
					if scan.MatchString(step) && !strings.Contains(step, "USING") {
						t.Errorf("a table is scanned: %s", step)
					}
				}
				all := strings.Join(steps, "\n")
				for _, part := range want {
					if !strings.Contains(all, part) {
						t.Errorf("the plan does not use %s", part)
					}
				}
				if t.Failed() {
					t.Log(all)
				}
			})
		}
	}
}

var (
	scan   = regexp.MustCompile(`^SCAN (e|r|w|b|outbox_events)\b`)
	tokens = strings.NewReplacer("{events}", "outbox_events", "{shards}", "outbox_shards", "{attempts}", "outbox_attempts",
		"{versions}", "outbox_versions", "{holds}", "outbox_holds")
)

// explain returns the steps of the plans of all statements of one of the store's files.
func explain(t *testing.T, d database, file string) (steps []string) {
	t.Helper()
	text, err := os.ReadFile("../../sqlstore/sqlite/" + file + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?m)^\s*--.*\n`).ReplaceAllString(tokens.Replace(string(text)), "")
	for statement := range strings.SplitSeq(strings.TrimSpace(code), ";\n") {
		args := make([]any, 7)
		for i := range args {
			args[i] = "[]"
		}
		steps = append(steps, explainStatement(t, d, statement, args)...)
	}
	return steps
}

func explainStatement(t *testing.T, d database, statement string, args []any) (steps []string) {
	t.Helper()
	rows, err := d.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}
