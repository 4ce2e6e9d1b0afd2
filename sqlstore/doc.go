// Package sqlstore keeps an outbox in PostgreSQL, MySQL, MariaDB or SQLite, over database/sql and any driver.
//
//	db, err := sql.Open("pgx", sqlstore.PostgresDSN(dsn))
//	store, err := sqlstore.Open(db, sqlstore.Postgres, sqlstore.Config{Table: "app.outbox_events"})
//	err = store.Init(ctx)
//
// # Tables
//
// Init creates the outbox table and eight side tables in the same schema. For the table outbox_events they are
// outbox_shards (leases), outbox_relays (heartbeats), outbox_attempts (failed attempts and operators' actions),
// outbox_versions (aggregate versions that have left), outbox_holds (dead events that hold their keys), outbox_jobs and
// outbox_job_events (redrives and discards of many dead letters, and their sets) and outbox_schema (version and layout); for any
// other table NAME they are NAME_shards and so on, so that several outboxes can live in one schema. A table named outbox cannot
// stand beside one named outbox_events.
//
// Producers insert rows by plain SQL in their own transactions. They leave id, status, retry_count, shard and created_at
// to the database, and set next_attempt_at only to schedule an event. A second event with the same dedup_key is dropped by
//
//	INSERT ... ON CONFLICT (dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING
//
// and in MySQL and MariaDB by ON DUPLICATE KEY UPDATE id = id.
//
// With a Mapping the outbox table is one that somebody else designed. Init then creates side tables only: besides those
// above, NAME_failures (what failed and is not settled), and in PostgreSQL the function NAME_json.
//
// # What a relay's user of the database may do
//
// SELECT, UPDATE and DELETE on the outbox table; SELECT, INSERT and UPDATE on the shards and the versions; SELECT, INSERT,
// UPDATE and DELETE on the relays, the holds and the jobs; SELECT, INSERT and DELETE on the attempts and the jobs' events; SELECT on
// the schema table. Init needs the right to create tables. Producers need INSERT on the outbox table. On a mapped table SELECT and UPDATE are enough, and where published
// rows are deleted SELECT and DELETE, with UPDATE if a column is mapped in which failures show; cleaning it needs DELETE.
// Verify reports what is missing.
//
// # How it works
//
// What a relay writes to PostgreSQL, it writes by single statements that commit by themselves, so that one which halts
// in the middle of a call leaves no lock behind that others wait for. SQLite needs two statements for some of it, in one
// transaction. Reads that must not go astray over old statistics set the planner's switches for their transaction.
//
// What a relay writes to MySQL and MariaDB it writes by short transactions in READ COMMITTED that lock events by their primary
// keys and do not wait for locked ones.
//
// Settle proves the lease by locking its row for key share, which shuts out Acquire (it locks for update and skips what is
// locked) but not Renew; MySQL knows no such lock, and there a renewal waits for a settle. Read follows indexes that hold
// no settled row, or hold settled rows apart.
//
// Each part of a job is a transaction of several statements, in PostgreSQL as well, because the position of the job must not
// be committed without the events. One that halts in the middle keeps the job, until the server ends its session: after ten
// seconds in PostgreSQL, and in MySQL after the wait_timeout of MySQLDSN. Others pass a job over that is locked.
//
// RowClaims claims events one by one instead. Its statements are the files claim_*.sql; a mapped table's replace those of the
// same name.
//
// What differs between the databases stands in the .sql files of each: the same names, the same parameters.
package sqlstore
