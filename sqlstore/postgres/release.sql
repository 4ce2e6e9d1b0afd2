-- $1 relay name, $2 member id, $3 leases as JSON.
WITH held AS (
  SELECT * FROM json_to_recordset($3::text::json) AS held(shard smallint, epoch bigint)
), mine AS (
  SELECT l.shard
  FROM {shards} l
  WHERE l.relay_name = $1 AND l.owner = $2 AND (l.shard, l.epoch) IN (SELECT shard, epoch FROM held)
  ORDER BY l.shard
  FOR UPDATE
)
UPDATE {shards} l
SET owner = NULL, lease_until = NULL
FROM mine
WHERE l.relay_name = $1 AND l.shard = mine.shard;
