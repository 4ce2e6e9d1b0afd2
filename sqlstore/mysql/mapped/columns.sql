-- Returns the columns of the side tables that are missing or have another type: table, column, type, type that it has or empty.
WITH expected AS (
SELECT tbl, col, type
FROM JSON_TABLE('[
  ["{side}_failures", "event", "varchar(767)"],
  ["{side}_failures", "event_key", "varchar(767)"],
  ["{side}_failures", "state", "varchar(10)"],
  ["{side}_failures", "their_state", "varchar(10)"],
  ["{side}_failures", "retry_count", "int"],
  ["{side}_failures", "next_attempt_at", "datetime(6)"],
  ["{side}_failures", "last_error", "text"],
  ["{side}_failures", "blocking_key", "varchar(767)"],
  ["{side}_shards", "relay_name", "varchar(255)"],
  ["{side}_shards", "shard", "smallint"],
  ["{side}_shards", "owner", "varchar(255)"],
  ["{side}_shards", "epoch", "bigint"],
  ["{side}_shards", "lease_until", "datetime(6)"],
  ["{side}_relays", "id", "varchar(255)"],
  ["{side}_relays", "relay_name", "varchar(255)"],
  ["{side}_relays", "host", "varchar(255)"],
  ["{side}_relays", "version", "varchar(255)"],
  ["{side}_relays", "started_at", "datetime(6)"],
  ["{side}_relays", "heartbeat_at", "datetime(6)"],
  ["{side}_relays", "lease_seconds", "double"],
  ["{side}_relays", "sinks", "longtext"],
  ["{side}_relays", "claim", "varchar(10)"],
  ["{side}_versions", "aggregate_type", "varchar(255)"],
  ["{side}_versions", "aggregate_id", "varchar(512)"],
  ["{side}_versions", "version", "bigint"],
  ["{side}_versions", "left_at", "datetime(6)"],
  ["{side}_holds", "event", "varchar(767)"],
  ["{side}_holds", "event_key", "varchar(767)"],
  ["{side}_holds", "held_at", "datetime(6)"],
  ["{side}_attempts", "id", "bigint"],
  ["{side}_attempts", "event", "varchar(767)"],
  ["{side}_attempts", "at", "datetime(6)"],
  ["{side}_attempts", "outcome", "varchar(10)"],
  ["{side}_attempts", "error", "text"],
  ["{side}_attempts", "actor", "text"],
  ["{side}_attempts", "sink", "text"],
  ["{side}_jobs", "id", "bigint"],
  ["{side}_jobs", "kind", "varchar(10)"],
  ["{side}_jobs", "state", "varchar(10)"],
  ["{side}_jobs", "who", "text"],
  ["{side}_jobs", "reason", "text"],
  ["{side}_jobs", "filter", "text"],
  ["{side}_jobs", "rate", "bigint"],
  ["{side}_jobs", "total", "bigint"],
  ["{side}_jobs", "looked", "bigint"],
  ["{side}_jobs", "changed", "bigint"],
  ["{side}_jobs", "created_at", "datetime(6)"],
  ["{side}_jobs", "due_at", "datetime(6)"],
  ["{side}_jobs", "steered", "text"],
  ["{side}_jobs", "finished_at", "datetime(6)"],
  ["{side}_job_events", "job", "bigint"],
  ["{side}_job_events", "n", "bigint"],
  ["{side}_job_events", "event", "varchar(767)"]
]', '$[*]' COLUMNS (tbl varchar(64) CHARACTER SET utf8mb4 PATH '$[0]', col varchar(64) CHARACTER SET utf8mb4 PATH '$[1]', type varchar(64) CHARACTER SET utf8mb4 PATH '$[2]')) list
), actual AS (
  SELECT table_name, column_name,
         concat(data_type, CASE WHEN data_type IN ('char', 'varchar') THEN concat('(', character_maximum_length, ')')
                                WHEN data_type = 'datetime' THEN concat('(', datetime_precision, ')') ELSE '' END) AS type
  FROM information_schema.columns
  WHERE table_schema = coalesce(nullif('{database}', ''), database())
    AND table_name IN ('{side}_failures', '{side}_shards', '{side}_relays', '{side}_versions', '{side}_holds', '{side}_attempts', '{side}_jobs', '{side}_job_events')
)
SELECT expected.tbl, expected.col, expected.type, coalesce(actual.type, '')
FROM expected
LEFT JOIN actual ON actual.table_name = expected.tbl AND actual.column_name = expected.col
WHERE actual.type IS NULL OR lower(actual.type) <> expected.type;
