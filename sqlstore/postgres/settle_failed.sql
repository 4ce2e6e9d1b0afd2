-- $1 relay name, $2 member id, $3 settlements as JSON. Returns the ids that were written.
WITH patience AS (
  -- A row that somebody else keeps locked must not hold up the others; see Store.settle.
  SELECT set_config('lock_timeout', '100ms', true)
), settled AS (
  SELECT settled.*
  FROM patience, json_to_recordset($3::text::json) AS settled(id bigint, shard smallint, epoch bigint, state text, retry_count int, retry_after float8, error text, sink text, held boolean, holds boolean)
), proven AS (
  SELECT l.shard, l.epoch
  FROM {shards} l
  WHERE l.relay_name = $1 AND l.owner = $2 AND (l.shard, l.epoch) IN (SELECT DISTINCT shard, epoch FROM settled)
  ORDER BY l.shard
  FOR KEY SHARE
), failed AS (
  UPDATE {events} e
  SET status = settled.state, retry_count = settled.retry_count, last_error = settled.error,
      next_attempt_at = now() + settled.retry_after * interval '1 second'
  FROM settled JOIN proven USING (shard, epoch)
  WHERE e.id = settled.id AND e.shard = settled.shard AND e.status = 'PENDING'
  RETURNING e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, settled.state, settled.error, settled.sink, settled.held, settled.holds
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
  SELECT id, aggregate_id FROM failed WHERE holds
  ON CONFLICT (event) DO UPDATE SET event_key = excluded.event_key, held_at = excluded.held_at, redriven = false
), kept AS (
  INSERT INTO {attempts} (event, outcome, error, actor, sink)
  SELECT id, CASE state WHEN 'DEAD' THEN 'dead' ELSE 'retry' END, error, $2, sink FROM failed WHERE held IS NOT TRUE
)
SELECT id FROM failed;
