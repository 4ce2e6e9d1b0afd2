-- $1 relay name, $2 member id, $3 settlements as JSON. Returns the ids that were written.
WITH patience AS (
  -- A row that somebody else keeps locked must not hold up the others; see Store.settle.
  SELECT set_config('lock_timeout', '100ms', true)
), settled AS (
  SELECT settled.*
  FROM patience, json_to_recordset($3::text::json) AS settled(id bigint, shard smallint, epoch bigint, published_to text)
), proven AS (
  -- The lock lasts until the outcomes are written, so nobody can take these shards in between. A renewal of the
  -- same lease does not wait for it.
  SELECT l.shard, l.epoch
  FROM {shards} l
  WHERE l.relay_name = $1 AND l.owner = $2 AND (l.shard, l.epoch) IN (SELECT DISTINCT shard, epoch FROM settled)
  ORDER BY l.shard
  FOR KEY SHARE
), published AS (
  UPDATE {events} e
  SET status = 'PUBLISHED', published_at = now(), published_to = settled.published_to, last_error = NULL
  FROM settled JOIN proven USING (shard, epoch)
  WHERE e.id = settled.id AND e.shard = settled.shard AND e.status = 'PENDING'
  RETURNING e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version
), versions AS (
  INSERT INTO {versions} AS v (aggregate_type, aggregate_id, version)
  SELECT aggregate_type, aggregate_id, max(aggregate_version)
  FROM published
  WHERE aggregate_version IS NOT NULL
  GROUP BY aggregate_type, aggregate_id
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET version = greatest(v.version, excluded.version), left_at = excluded.left_at
)
SELECT id FROM published;
