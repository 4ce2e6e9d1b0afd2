-- The dead events that hold their keys: no event of these keys is read. A row is written with DEAD, by one statement.
CREATE TABLE {holds} (
  event     bigint      PRIMARY KEY,
  event_key text        NOT NULL,
  held_at   timestamptz NOT NULL DEFAULT now(),

  -- A mark: the event was redriven at held_at, with others of higher ids. It holds nothing; see read.sql.
  redriven  boolean     NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

INSERT INTO {schema} (version, outbox_table, shards, payload)
SELECT 3, outbox_table, shards, payload FROM {schema} WHERE version = 2;
