-- Returns the columns of the side tables that are missing or have another type: table, column, type, type that it has or empty.
WITH expected(tbl, col, type) AS (VALUES
  ('{failures}', 'event', 'text'),
  ('{failures}', 'event_key', 'text'),
  ('{failures}', 'state', 'text'),
  ('{failures}', 'their_state', 'text'),
  ('{failures}', 'retry_count', 'integer'),
  ('{failures}', 'next_attempt_at', 'timestamp with time zone'),
  ('{failures}', 'last_error', 'text'),
  ('{shards}', 'relay_name', 'text'),
  ('{shards}', 'shard', 'smallint'),
  ('{shards}', 'owner', 'text'),
  ('{shards}', 'epoch', 'bigint'),
  ('{shards}', 'lease_until', 'timestamp with time zone'),
  ('{relays}', 'id', 'text'),
  ('{relays}', 'relay_name', 'text'),
  ('{relays}', 'host', 'text'),
  ('{relays}', 'version', 'text'),
  ('{relays}', 'started_at', 'timestamp with time zone'),
  ('{relays}', 'heartbeat_at', 'timestamp with time zone'),
  ('{relays}', 'lease_seconds', 'double precision'),
  ('{relays}', 'sinks', 'json'),
  ('{relays}', 'claim', 'text'),
  ('{versions}', 'aggregate_type', 'text'),
  ('{versions}', 'aggregate_id', 'text'),
  ('{versions}', 'version', 'bigint'),
  ('{versions}', 'left_at', 'timestamp with time zone'),
  ('{attempts}', 'id', 'bigint'),
  ('{attempts}', 'event', 'text'),
  ('{attempts}', 'at', 'timestamp with time zone'),
  ('{attempts}', 'outcome', 'text'),
  ('{attempts}', 'error', 'text'),
  ('{attempts}', 'actor', 'text')
)
SELECT tbl, col, type, coalesce(format_type(a.atttypid, a.atttypmod), '')
FROM expected
LEFT JOIN pg_attribute a ON a.attrelid = to_regclass(tbl) AND a.attname = col AND NOT a.attisdropped
WHERE format_type(a.atttypid, a.atttypmod) IS DISTINCT FROM type;
