-- Like settle_failed.sql, for tables in which nothing of it can be written.
WITH patience AS (
  -- A row that somebody else keeps locked must not hold up the others; see Store.settle.
  SELECT set_config('lock_timeout', '100ms', true)
), settled AS (
  SELECT settled.*
  FROM patience, json_to_recordset($3::text::json) AS settled(id text, shard smallint, epoch bigint, state text, retry_count int, retry_after float8, error text, sink text, held boolean, holds boolean)
), proven AS (
  SELECT l.shard, l.epoch
  FROM {shards} l
  WHERE l.relay_name = $1 AND l.owner = $2 AND (l.shard, l.epoch) IN (SELECT DISTINCT shard, epoch FROM settled)
  ORDER BY l.shard
  FOR KEY SHARE
), failed AS (
  SELECT s.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, e.event_key, s.state, s.retry_count, s.retry_after, s.error, s.sink, s.held, s.holds
  FROM settled s
  JOIN proven USING (shard, epoch)
  JOIN {rows} e ON e.id = s.id::{id_type} AND e.their_state = 'PENDING' AND e.shard = s.shard
  WHERE NOT EXISTS (
    SELECT FROM {failures} f WHERE f.event = s.id AND f.event_key = e.event_key AND f.their_state = 'PENDING' AND f.state <> 'PENDING'
  )
), recorded AS (
  INSERT INTO {failures} AS f (event, event_key, state, their_state, retry_count, next_attempt_at, last_error)
  SELECT id, event_key, state, 'PENDING', retry_count,
         now() + retry_after * interval '1 second', error
  FROM failed
  ON CONFLICT (event) DO UPDATE
  SET event_key = excluded.event_key, state = excluded.state, their_state = excluded.their_state,
      retry_count = excluded.retry_count, next_attempt_at = excluded.next_attempt_at, last_error = excluded.last_error
), versions AS (
  INSERT INTO {versions} AS v (aggregate_type, aggregate_id, version)
  SELECT aggregate_type, aggregate_id, max(aggregate_version)
  FROM failed
  WHERE aggregate_version IS NOT NULL AND state = 'DEAD'
  GROUP BY aggregate_type, aggregate_id
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET version = greatest(v.version, excluded.version), left_at = excluded.left_at
), kept_back AS (
  INSERT INTO {holds} (event, event_key)
  SELECT id, event_key FROM failed WHERE holds
  ON CONFLICT (event) DO UPDATE SET event_key = excluded.event_key, held_at = excluded.held_at
), kept AS (
  INSERT INTO {attempts} (event, outcome, error, actor, sink)
  SELECT id, CASE state WHEN 'DEAD' THEN 'dead' ELSE 'retry' END, error, $2, sink FROM failed WHERE held IS NOT TRUE
)
SELECT id FROM failed;
