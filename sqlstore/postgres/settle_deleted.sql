-- Like settle_published.sql, for outboxes that do not keep published events.
WITH settled AS (
  SELECT * FROM json_to_recordset($3::text::json) AS settled(id bigint, shard smallint, epoch bigint)
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
  RETURNING e.id
), forgotten AS (
  DELETE FROM {attempts} a WHERE a.event = ANY (ARRAY(SELECT id FROM deleted))
)
SELECT id FROM deleted;
