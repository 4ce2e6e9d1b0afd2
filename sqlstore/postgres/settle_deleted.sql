-- Like settle_published.sql, for outboxes that do not keep published events.
WITH patience AS (
  -- A row that somebody else keeps locked must not hold up the others; see Store.settle.
  SELECT set_config('lock_timeout', '100ms', true)
), settled AS (
  SELECT settled.*
  FROM patience, json_to_recordset($3::text::json) AS settled(id bigint, shard smallint, epoch bigint)
), proven AS (
  SELECT l.shard, l.epoch
  FROM {shards} l
  WHERE l.relay_name = $1 AND l.owner = $2 AND (l.shard, l.epoch) IN (SELECT DISTINCT shard, epoch FROM settled)
  ORDER BY l.shard
  FOR KEY SHARE
), deleted AS (
  DELETE FROM {events} e
  USING settled JOIN proven USING (shard, epoch)
  WHERE e.id = settled.id AND e.shard = settled.shard AND e.status = 'PENDING'
  RETURNING e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version
), versions AS (
  INSERT INTO {versions} AS v (aggregate_type, aggregate_id, version)
  SELECT aggregate_type, aggregate_id, max(aggregate_version)
  FROM deleted
  WHERE aggregate_version IS NOT NULL
  GROUP BY aggregate_type, aggregate_id
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET version = greatest(v.version, excluded.version), left_at = excluded.left_at
), forgotten AS (
  DELETE FROM {attempts} a WHERE a.event = ANY (ARRAY(SELECT id FROM deleted))
)
SELECT id FROM deleted;
