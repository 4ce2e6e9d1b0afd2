-- The dead events that hold their keys: no event of these keys is read. A row is written with DEAD, by one statement.
CREATE TABLE {holds} (
  event     text        PRIMARY KEY,
  event_key text        NOT NULL,
  held_at   timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

INSERT INTO {schema} (version, outbox_table, shards, payload)
SELECT 2, outbox_table, shards, payload FROM {schema} WHERE version = 1;
