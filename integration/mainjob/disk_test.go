package mainjob_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // driver sqlite

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/integration/internal/daemon"
	"github.com/postrider/postrider/internal/await"
	"github.com/postrider/postrider/internal/servers"
)

// A disk that is full is an outage of the database: the relay says so, and writes the outcomes that it has when there
// is room again, instead of sending the events once more.
func TestFullDiskUnderSQLiteIsToldAndCausesNoDuplicate(t *testing.T) {
	const events = 200
	dir := smallDisk(t, "4m")
	admin := fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t))
	file := filepath.Join(dir, "outbox.db")
	config := writeConfig(t, fmt.Sprintf("outbox: {dsn: %q}\nsinks: {main: {type: stdout}}\nroutes: [{sink: main}]\nadmin: {listen: %q}\n", "sqlite:"+file, admin))
	tells(t, 0, daemon.Run(t, binary, "init", "-c", config))
	relay := daemon.Start(t, binary, config, admin)
	awaitReady(t, relay)

	db, ids := addScheduled(t, file, events)
	filler := fillDisk(t, dir)
	awaitNotReady(t, relay, "settle fails")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	await.True(t, soon, "all events are published", func() bool {
		var n int
		err := db.QueryRow("SELECT count(*) FROM outbox_events WHERE status = 'PUBLISHED' AND retry_count = 0").Scan(&n)
		return err == nil && n == events
	})
	awaitReady(t, relay)
	if !strings.Contains(relay.Output(), "disk is full") {
		t.Error("the log does not tell that the disk is full")
	}
	// The sink writes a line for each event, and the id stands in two headers of it.
	for _, id := range ids {
		if n := strings.Count(relay.Output(), id); n != 2 {
			t.Fatalf("the id of event %s was written %d times, want 2", id, n)
		}
	}
}

// smallDisk mounts a file system of that size until the test ends.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mount a small disk: %v; run the tests as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// addScheduled adds events that are due in a moment, so that there is time to fill the disk.
func addScheduled(t *testing.T, file string, n int) (db *sql.DB, ids []string) {
	t.Helper()
	const delay = 3 * time.Second
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	outbox, err := postrider.New(postrider.Config{Dialect: postrider.SQLite})
	if err != nil {
		t.Fatal(err)
	}
	events := make([]postrider.Event, n)
	for i := range events {
		events[i] = postrider.Event{
			AggregateType: "wallet", AggregateID: "w", Type: "WalletDebited", Payload: payload(i), At: time.Now().Add(delay),
		}
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() // fails when it was committed
	added, err := outbox.Add(t.Context(), tx, events...)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, a := range added {
		ids = append(ids, a.EventID)
	}
	return db, ids
}

// fillDisk writes a file until nothing more fits.
func fillDisk(t *testing.T, dir string) (name string) {
	t.Helper()
	name = filepath.Join(dir, "filler")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return name
}
