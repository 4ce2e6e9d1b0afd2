-- Like settle_published.sql, for outboxes that do not keep published events.
WITH patience AS (
  -- A row that somebody else keeps locked must not hold up the others; see Store.settle.
  SELECT set_config('lock_timeout', '100ms', true)
), settled AS (
  SELECT settled.*
  FROM patience, json_to_recordset($3::text::json) AS settled(id text, shard smallint, epoch bigint)
), proven AS (
  SELECT l.shard, l.epoch
  FROM {shards} l
  WHERE l.relay_name = $1 AND l.owner = $2 AND (l.shard, l.epoch) IN (SELECT DISTINCT shard, epoch FROM settled)
  ORDER BY l.shard
  FOR KEY SHARE
), deleted AS (
  DELETE FROM {theirs} postrider_theirs
  USING (
    SELECT s.id AS postrider_id, s.shard AS postrider_shard FROM settled s JOIN proven USING (shard, epoch)
  ) postrider_settled
  WHERE postrider_theirs.{id} = postrider_id::{id_type} AND {row_is_pending} AND {shard_of_row} = postrider_shard
    AND (
      SELECT f.event_key FROM {failures} f WHERE f.event = postrider_id AND f.their_state = 'PENDING' AND f.state <> 'PENDING'
    ) IS DISTINCT FROM {key_of_row}
  RETURNING postrider_id AS id, {type_of_row} AS aggregate_type, {aggregate_of_row} AS aggregate_id, {version_of_row} AS aggregate_version
), versions AS (
  INSERT INTO {versions} AS v (aggregate_type, aggregate_id, version)
  SELECT aggregate_type, aggregate_id, max(aggregate_version)
  FROM deleted
  WHERE aggregate_version IS NOT NULL
  GROUP BY aggregate_type, aggregate_id
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET version = greatest(v.version, excluded.version), left_at = excluded.left_at
), recovered AS (
  DELETE FROM {failures} f WHERE f.event = ANY (ARRAY(SELECT id FROM deleted))
), forgotten AS (
  DELETE FROM {attempts} a WHERE a.event = ANY (ARRAY(SELECT id FROM deleted))
)
SELECT id FROM deleted;
