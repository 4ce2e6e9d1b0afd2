-- The dead events that hold their keys: no event of these keys is read. A row is written with DEAD, in one transaction.
CREATE TABLE IF NOT EXISTS {holds} (
  event     bigint       NOT NULL PRIMARY KEY,
  event_key varchar(255) NOT NULL,
  held_at   datetime(6)  NOT NULL DEFAULT (utc_timestamp(6)),
  INDEX {index_holds_key} (event_key)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 {exact};

-- A table of this name that is not ours is found here.
SELECT {holds}.held_at FROM {holds} LIMIT 0;

INSERT INTO {schema} (version, outbox_table, shards, payload)
SELECT 3, outbox_table, shards, payload FROM {schema} WHERE version = 2;
