package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

func TestInitRunsOnceWhenCalledFromManyAtOnce(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if err := d.open(t, sqlstore.Config{}).Init(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestInitRefusesTablesThatItMustLeaveAlone(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{Shards: 4})
		refuse := func(config sqlstore.Config, words string) {
			t.Helper()
			if err := d.open(t, config).Init(t.Context()); !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), words) {
				t.Errorf("Init of %+v: %v, want ErrSchema with %q", config, err, words)
			}
		}
		refuse(sqlstore.Config{Shards: 8}, "set relay.shards to 4")
		refuse(sqlstore.Config{Shards: 4, Payload: sqlstore.PayloadBinary}, "use payload json")
		execute(t, d.db, "INSERT INTO outbox_schema SELECT 99, applied_at, outbox_table, shards, payload FROM outbox_schema WHERE version = 1")
		refuse(sqlstore.Config{Shards: 4}, "version 99")
	})
}

func TestInitIsUndoneWhenItFails(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		execute(t, d.db, "CREATE TABLE outbox_relays (in_the_way int)")
		s := d.open(t, sqlstore.Config{})
		if err := s.Init(t.Context()); err == nil || !strings.Contains(err.Error(), "outbox_relays") {
			t.Errorf("Init over a foreign table: %v", err)
		}
		execute(t, d.db, "DROP TABLE outbox_relays")
		if err := s.Init(t.Context()); err != nil {
			t.Errorf("Init after the obstacle was removed: %v", err)
		}
	})
}

func TestTwoOutboxesLiveInOneSchema(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		first := d.store(t, sqlstore.Config{})
		other := d
		other.table = strings.Replace(d.table, "outbox_events", "billing", 1)
		second := other.store(t, sqlstore.Config{Shards: 3})
		other.addMany(t, 5)
		for s, want := range map[*sqlstore.Store]int64{first: 0, second: 5} {
			if b, err := s.Backlog(t.Context()); err != nil || b.Pending != want {
				t.Errorf("backlog %+v, %v; want %d pending", b, err, want)
			}
		}
		beat := relay.Heartbeat{Member: relay.Member{Name: "a", ID: "a", Shards: shards}}
		if _, err := first.Renew(t.Context(), beat, nil); err != nil {
			t.Error(err)
		}
		beat.Name, beat.ID, beat.Shards = "b", "b", 3
		if _, err := second.Renew(t.Context(), beat, nil); err != nil {
			t.Errorf("another relay name on another outbox: %v", err)
		}
	})
}

func TestOutboxesOfTheSchemaAreListed(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		second := d
		second.table = strings.Replace(d.table, "outbox_events", "billing", 1)
		second.store(t, sqlstore.Config{})
		execute(t, d.db, "CREATE TABLE tasks (next_attempt_at int)")
		execute(t, d.db, "CREATE TABLE reports_schema (outbox_table int)")
		tables, err := s.Outboxes(t.Context())
		for i, table := range tables {
			tables[i] = table[strings.LastIndexByte(table, '.')+1:]
		}
		if want := []string{"billing", "outbox_events"}; err != nil || !slices.Equal(tables, want) {
			t.Errorf("%q, %v; want %q", tables, err, want)
		}
	})
}

func TestAnOutboxWhoseSideTablesAreTakenIsRefused(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		d.table = strings.Replace(d.table, "outbox_events", "outbox", 1)
		if err := d.open(t, sqlstore.Config{}).Init(t.Context()); !errors.Is(err, relay.ErrSchema) || !strings.Contains(err.Error(), `belong to the outbox "outbox_events"`) {
			t.Errorf("Init: %v", err)
		}
	})
}

func TestPrintIsWhatInitDoes(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.open(t, sqlstore.Config{})
		var script bytes.Buffer
		if err := s.Print(&script); err != nil {
			t.Fatal(err)
		}
		runScript(t, d, script.String())
		for _, f := range s.Verify(t.Context()) {
			if f.Level != "ok" {
				t.Errorf("%+v", f)
			}
		}
		if err := s.Init(t.Context()); err != nil {
			t.Errorf("Init after the printed SQL: %v", err)
		}
	})
}

// runScript executes a script as the database's own client does.
func runScript(t *testing.T, d database, script string) {
	t.Helper()
	if d.dialect.String() != sqlstore.MySQL.String() {
		execute(t, d.db, script)
		return
	}
	for statement := range strings.SplitSeq(strings.TrimSpace(script), ";\n") {
		execute(t, d.db, statement)
	}
}

func TestInitUpgradesTablesOfTheFirstVersion(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		d.addMany(t, 3)
		schema := strings.TrimSuffix(d.table, "outbox_events")
		undo := []string{
			"DROP TABLE " + schema + "outbox_versions",
			"DROP TABLE " + schema + "outbox_holds",
			"ALTER TABLE " + schema + "outbox_relays DROP COLUMN claim",
			"DELETE FROM " + schema + "outbox_schema WHERE version > 1",
		}
		undo = append(undo, withoutJobs(schema+"outbox")...)
		if d.dialect.String() != sqlstore.MySQL.String() { // whose first version had the indexes of the second
			undo = append(undo,
				"DROP INDEX "+schema+"outbox_events_gaps",
				"DROP INDEX "+schema+"outbox_events_failed",
				"CREATE INDEX outbox_events_failed ON "+d.table+" (shard, id) WHERE status = 'PENDING' AND retry_count > 0")
		}
		for _, statement := range undo {
			execute(t, d.db, statement)
		}
		old := d.open(t, sqlstore.Config{})
		if _, err := old.Read(t.Context(), everything(1)); err == nil {
			t.Fatal("tables of the first version are read without an upgrade")
		}
		if err := old.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, f := range old.Verify(t.Context()) {
			if f.Level != "ok" {
				t.Errorf("%+v", f)
			}
		}
		if b, err := s.Backlog(t.Context()); err != nil || b.Pending != 3 {
			t.Errorf("backlog %+v, %v", b, err)
		}
	})
}

// TestInitUpgradesTablesWithoutHolds has events in every state, which an upgrade must leave as they are.
func TestInitUpgradesTablesWithoutHolds(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
		h := held{s, t, a, ownAll(t, s, a)}
		d.addMany(t, 4)
		events := h.read()
		h.settle(events[0], postrider.StatePublished, "")
		h.settle(events[1], postrider.StateDead, "no")
		h.settle(events[2], postrider.StatePending, "not now")
		side := strings.TrimSuffix(d.table, "_events")
		for _, statement := range append(withoutJobs(side), "DROP TABLE "+side+"_holds", "DELETE FROM "+side+"_schema WHERE version > 2") {
			execute(t, d.db, statement)
		}

		h.Store = d.open(t, sqlstore.Config{})
		if _, err := h.Read(t.Context(), everything(1)); !errors.Is(err, relay.ErrSchema) {
			t.Errorf("tables of the version before are read without an upgrade: %v", err)
		}
		if err := h.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, err := h.Events(t.Context(), operator.Filter{})
		if err != nil || len(rows) != len(events) {
			t.Fatalf("%d events of %d, %v", len(rows), len(events), err)
		}
		for i, want := range []postrider.State{postrider.StatePublished, postrider.StateDead, postrider.StatePending, postrider.StatePending} {
			row := rows[slices.IndexFunc(rows, func(r operator.Row) bool { return r.ID == events[i].ID })]
			if row.Status != want || row.Holds || (row.LastError == "") != (i == 0 || i == 3) {
				t.Errorf("event %d is %+v, want %s", i, row, want)
			}
		}
		h.die(events[3])
		h.wantHeldKeys(t, 1)
	})
}

// withoutJobs are the statements that make side tables those of the version before there were jobs.
func withoutJobs(side string) []string {
	return []string{
		"DROP TABLE " + side + "_jobs",
		"DROP TABLE " + side + "_job_events",
		"ALTER TABLE " + side + "_attempts DROP COLUMN sink",
	}
}

func TestInitUpgradesTablesWithoutJobs(t *testing.T) {
	everyDatabase(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		deadJob(t, d, s, 3, operator.NewJob{Kind: operator.JobRedrive})
		side := strings.TrimSuffix(d.table, "_events")
		for _, statement := range append(withoutJobs(side), "DELETE FROM "+side+"_schema WHERE version > 3") {
			execute(t, d.db, statement)
		}
		upgradesToJobs(t, d.open(t, sqlstore.Config{}), 3)
	})
}

func TestInitUpgradesSideTablesWithoutJobs(t *testing.T) {
	eachServer(t, "", func(t *testing.T, m mapped) {
		s := m.init(t)
		for i := range 3 {
			execute(t, m.db, fmt.Sprintf("INSERT INTO tasks (id, event_key) VALUES (%d, 'k%d')", i, i))
		}
		owner := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
		leases := ownAll(t, s, owner)
		var settlements []relay.Settlement
		for _, e := range readSome(t, s, everything(3)) {
			settlements = append(settlements, relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StateDead, RetryCount: 1, Error: "refused"})
		}
		if settled, err := s.Settle(t.Context(), owner, settlements); err != nil || len(settled) != 3 {
			t.Fatalf("%d events became DEAD, %v", len(settled), err)
		}
		for _, statement := range append(withoutJobs(m.table), "DELETE FROM "+m.table+"_schema WHERE version > 2") {
			execute(t, m.db, statement)
		}
		upgradesToJobs(t, m.openMapped(t), 3)
	})
}

// upgradesToJobs fails unless Init makes jobs over dead letters from before possible.
func upgradesToJobs(t *testing.T, s *sqlstore.Store, dead int) {
	t.Helper()
	if _, err := s.CreateJob(t.Context(), operator.NewJob{Kind: operator.JobRedrive}); !errors.Is(err, relay.ErrSchema) {
		t.Fatalf("a job without tables for it: %v", err)
	}
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Verify(t.Context()) {
		if f.Level == operator.LevelError {
			t.Errorf("%+v", f)
		}
	}
	if groups, err := s.DeadGroups(t.Context(), 10); err != nil || len(groups) != 1 || groups[0].Sink != "" {
		t.Errorf("groups %+v, %v", groups, err)
	}
	job, err := s.CreateJob(t.Context(), operator.NewJob{Kind: operator.JobRedrive})
	if err != nil {
		t.Fatal(err)
	}
	stepOnce(t, s)
	if job, err = s.Job(t.Context(), job.ID); err != nil || job.Changed != dead {
		t.Errorf("job %+v, %v", job, err)
	}
}
