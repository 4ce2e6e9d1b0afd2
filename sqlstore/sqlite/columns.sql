-- Returns the columns that are missing or have another type: table, column, type, type that it has or empty.
WITH expected(tbl, col, type) AS (VALUES
  ('{events}', 'id', 'integer'),
  ('{events}', 'event_id', 'text'),
  ('{events}', 'aggregate_type', 'text'),
  ('{events}', 'aggregate_id', 'text'),
  ('{events}', 'event_type', 'text'),
  ('{events}', 'aggregate_version', 'integer'),
  ('{events}', 'topic', 'text'),
  ('{events}', 'payload', '{payload_type}'),
  ('{events}', 'content_type', 'text'),
  ('{events}', 'headers', 'text'),
  ('{events}', 'dedup_key', 'text'),
  ('{events}', 'status', 'text'),
  ('{events}', 'retry_count', 'integer'),
  ('{events}', 'next_attempt_at', 'text'),
  ('{events}', 'last_error', 'text'),
  ('{events}', 'claim_token', 'text'),
  ('{events}', 'processing_until', 'text'),
  ('{events}', 'shard', 'integer'),
  ('{events}', 'published_to', 'text'),
  ('{events}', 'created_at', 'text'),
  ('{events}', 'published_at', 'text'),
  ('{shards}', 'relay_name', 'text'),
  ('{shards}', 'shard', 'integer'),
  ('{shards}', 'owner', 'text'),
  ('{shards}', 'epoch', 'integer'),
  ('{shards}', 'lease_until', 'text'),
  ('{relays}', 'id', 'text'),
  ('{relays}', 'relay_name', 'text'),
  ('{relays}', 'host', 'text'),
  ('{relays}', 'version', 'text'),
  ('{relays}', 'started_at', 'text'),
  ('{relays}', 'heartbeat_at', 'text'),
  ('{relays}', 'lease_seconds', 'real'),
  ('{relays}', 'sinks', 'text'),
  ('{attempts}', 'id', 'integer'),
  ('{attempts}', 'event', 'integer'),
  ('{attempts}', 'at', 'text'),
  ('{attempts}', 'outcome', 'text'),
  ('{attempts}', 'error', 'text'),
  ('{attempts}', 'actor', 'text')
), compared AS (
  SELECT tbl, col, type,
         coalesce((SELECT lower(replace(c.type, ' GENERATED ALWAYS', ''))
                   FROM pragma_table_xinfo(replace(tbl, '"', '')) c WHERE c.name = col), '') AS actual
  FROM expected
)
SELECT tbl, col, type, actual FROM compared WHERE actual <> type;
