-- How the relay shares the work. Relays that claim rows and relays that lease shards would send the same events.
ALTER TABLE {relays} ADD COLUMN claim varchar(10) NOT NULL DEFAULT 'shard' CHECK (claim IN ('shard', 'row'));

-- The highest aggregate_version that has left, for each aggregate whose events have one.
CREATE TABLE IF NOT EXISTS {versions} (
  aggregate_type varchar(255) NOT NULL,
  aggregate_id   varchar(255) NOT NULL,
  version        bigint       NOT NULL,
  left_at        datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  PRIMARY KEY (aggregate_type, aggregate_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- A table of this name that is not ours is found here.
SELECT {versions}.left_at FROM {versions} LIMIT 0;

INSERT INTO {schema} (version, outbox_table, shards, payload)
SELECT 2, outbox_table, shards, payload FROM {schema} WHERE version = 1;
