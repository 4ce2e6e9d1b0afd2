package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/operator"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/sqlstore"
)

// TestMySQLProducersInsertWhileARelayHoldsItsLocks has a producer, in the server's default isolation, insert before each
// commit of everything that a relay and an operator do. It waits for no lock longer than a second.
func TestMySQLProducersInsertWhileARelayHoldsItsLocks(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		d.store(t, sqlstore.Config{})
		produce := newPatient(t, d, "one")
		produce.again = "one" // of an event that the relay does not touch: one that it holds is worth waiting for
		commits := 0
		d.db = openHeld(t, d, func() {
			commits++
			produce.add(t)
		})
		s := d.open(t, sqlstore.Config{})
		a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
		leases := ownAll(t, s, a)
		d.addMany(t, 100)
		execute(t, d.db, "INSERT INTO "+d.table+` (aggregate_type, aggregate_id, event_type, payload, status, claim_token, processing_until)
			VALUES ('order', 'expired', 'OrderPlaced', '{}', 'PROCESSING', '0192f0c1-9a3b-8c4d-8e5f-012345678900', '2000-01-01'),
			('order', 'held', 'OrderPlaced', '{}', 'PROCESSING', '0192f0c1-9a3b-8c4d-8e5f-012345678901', '2999-01-01')`)
		before := commits
		relayOnce(t, s, a, leases)
		if commits-before < 8 {
			t.Errorf("%d transactions of the relay were met, want every kind", commits-before)
		}
	})
}

// relayOnce does everything that a relay and an operator do.
func relayOnce(t *testing.T, s *sqlstore.Store, a relay.Member, leases []relay.Lease) {
	t.Helper()
	events := readSome(t, s, everything(50))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	var outcomes []relay.Settlement
	for i, e := range events {
		one := relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePublished, Error: "no"}
		switch i % 10 {
		case 0:
			one.State = postrider.StateDead
		case 1:
			one.State, one.RetryCount, one.RetryAfter = postrider.StatePending, 1, time.Hour
		}
		outcomes = append(outcomes, one)
	}
	_, err := s.Settle(t.Context(), a, outcomes)
	must(err)
	_, err = s.Redrive(t.Context(), operator.Filter{Limit: 2}, operator.Action{Who: "me"})
	must(err)
	_, err = s.Discard(t.Context(), operator.Filter{Limit: 1}, operator.Action{Who: "me", Reason: "test"})
	must(err)
	_, err = s.Retry(t.Context(), operator.Filter{}, operator.Action{Who: "me"})
	must(err)
	_, err = s.Clean(t.Context(), relay.CleanRequest{Limit: 1000})
	must(err)
	must(s.Release(t.Context(), a, leases[:1]))
	_, err = s.Renew(t.Context(), relay.Heartbeat{Member: a}, leases[1:])
	must(err)
	taken, err := s.Acquire(t.Context(), a, leases[:1])
	must(err)
	leases[taken[0].Shard] = taken[0]
	_, err = s.Backlog(t.Context())
	must(err)
}

// TestMySQLProducersAndRelayNeverLockEachOtherOut has producers insert, in transactions of several rows and with
// deduplication keys that come again, while a relay reads, settles, retries and cleans.
func TestMySQLProducersAndRelayNeverLockEachOtherOut(t *testing.T) {
	eachMySQL(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		a := relay.Member{Name: "main", ID: "a", Shards: shards, LeaseTTL: time.Hour}
		leases := ownAll(t, s, a)
		ctx, cancel := context.WithCancel(t.Context())
		var producers, relays sync.WaitGroup
		for _, name := range []string{"one", "two", "three"} {
			produce := newPatient(t, d, name)
			producers.Go(func() {
				for range 100 {
					produce.add(t)
				}
			})
		}
		relays.Go(func() { work(ctx, t, s, a, leases) })
		relays.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Clean(t.Context(), relay.CleanRequest{Limit: 1000}); err != nil {
					t.Error(err)
				}
			}
		})
		producers.Wait()
		cancel()
		relays.Wait()
	})
}

// work settles what waits, each event as published in the end, until ctx is done and nothing is left.
func work(ctx context.Context, t *testing.T, s *sqlstore.Store, a relay.Member, leases []relay.Lease) {
	for turn := 0; ; turn++ {
		events, err := s.Read(t.Context(), everything(100))
		if err != nil {
			t.Error(err)
			return
		}
		if len(events) == 0 && ctx.Err() != nil {
			return
		}
		var outcomes []relay.Settlement
		for i, e := range events {
			one := relay.Settlement{ID: e.ID, Lease: leases[e.Shard], State: postrider.StatePublished}
			if (i+turn)%5 == 0 && e.RetryCount < 3 {
				one.State, one.RetryCount, one.Error = postrider.StatePending, e.RetryCount+1, "no"
			}
			outcomes = append(outcomes, one)
		}
		if _, err := s.Settle(t.Context(), a, outcomes); err != nil {
			t.Logf("will be settled with the next turn: %v", err)
		}
	}
}

// patient is a producer in the server's default isolation, whose transactions wait for a lock for no more than a second.
type patient struct {
	d    database
	conn *sql.Conn
	name string
	n    int

	again string // deduplication key that each transaction uses again; empty for the one of ten transactions ago
}

// newPatient adds two events between whose deduplication keys all those of the producer lie: producers that meet an
// event by its key lock the space before it, which is nothing that a relay could help.
func newPatient(t *testing.T, d database, name string) *patient {
	t.Helper()
	conn, err := d.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p := &patient{d: d, conn: conn, name: name}
	p.exec(t, "SET SESSION innodb_lock_wait_timeout = 1")
	for _, key := range []string{name, name + "~"} {
		p.exec(t, "INSERT INTO "+d.table+` (aggregate_type, aggregate_id, event_type, payload, dedup_key, next_attempt_at)
			VALUES ('order', 'border', 'OrderPlaced', '{}', ?, '2999-01-01')`, key)
	}
	return p
}

// add commits a transaction of five events. One has a new deduplication key, one a key that was used before.
func (p *patient) add(t *testing.T) {
	t.Helper()
	p.n++
	insert := "INSERT INTO " + p.d.table + ` (aggregate_type, aggregate_id, event_type, payload, dedup_key) VALUES ('order', ?, 'OrderPlaced', '{}', ?)
		ON DUPLICATE KEY UPDATE id = id`
	p.exec(t, "START TRANSACTION")
	for i := range 3 {
		p.exec(t, insert, fmt.Sprint("key-", i), nil)
	}
	p.exec(t, insert, "deduped", fmt.Sprintf("%s-%04d", p.name, p.n))
	again := p.again
	if again == "" {
		again = fmt.Sprintf("%s-%04d", p.name, max(p.n-10, 1))
	}
	p.exec(t, insert, "deduped", again)
	p.exec(t, "COMMIT")
}

func (p *patient) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := p.conn.ExecContext(t.Context(), statement, args...); err != nil {
		t.Errorf("producer %s, %s: %v", p.name, statement, err)
	}
}

// openHeld connects so that before runs ahead of each commit.
func openHeld(t *testing.T, d database, before func()) *sql.DB {
	t.Helper()
	config, err := mysql.ParseDSN(mysqlDSN(t, d.dsn))
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(heldConnector{connector, before})
	t.Cleanup(func() { db.Close() })
	return db
}

type heldConnector struct {
	driver.Connector
	before func()
}

func (c heldConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return heldConn{conn.(fullConn), c.before}, nil
}

// fullConn is what the driver's connections implement and database/sql asks for.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

type heldConn struct {
	fullConn
	before func()
}

func (c heldConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.fullConn.BeginTx(ctx, opts)
	return heldTx{tx, c.before}, err
}

type heldTx struct {
	driver.Tx
	before func()
}

func (tx heldTx) Commit() error {
	tx.before()
	return tx.Tx.Commit()
}
