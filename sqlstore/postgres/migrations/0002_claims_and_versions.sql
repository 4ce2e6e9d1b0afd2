-- How the relay shares the work. Relays that claim rows and relays that lease shards would send the same events.
ALTER TABLE {relays} ADD COLUMN claim text NOT NULL DEFAULT 'shard' CHECK (claim IN ('shard', 'row'));

-- The highest aggregate_version that has left, for each aggregate whose events have one.
CREATE TABLE {versions} (
  aggregate_type text        NOT NULL,
  aggregate_id   text        NOT NULL,
  version        bigint      NOT NULL,
  left_at        timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (aggregate_type, aggregate_id)
) WITH (fillfactor = 70);

-- Which versions of an aggregate wait, to find gaps between them.
CREATE INDEX {index_gaps} ON {events} (aggregate_id, aggregate_version) WHERE status = 'PENDING' AND aggregate_version IS NOT NULL;

-- An event can wait without having been tried: what waits is told by its error, again in other words than above.
DROP INDEX {dropped_failed};

CREATE INDEX {index_failed} ON {events} (shard, id) WHERE status = 'PENDING' AND coalesce(last_error, '') <> '';

INSERT INTO {schema} (version, outbox_table, shards, payload)
SELECT 2, outbox_table, shards, payload FROM {schema} WHERE version = 1;
