-- $1 relay name, $2 member id, $3 lease in seconds, $4 leases as JSON.
WITH held AS (
  SELECT * FROM json_to_recordset($4::text::json) AS held(shard smallint, epoch bigint)
), mine AS (
  -- In the order of the shards, so that two members never lock each other out.
  SELECT l.shard
  FROM {shards} l
  WHERE l.relay_name = $1 AND l.owner = $2 AND (l.shard, l.epoch) IN (SELECT shard, epoch FROM held)
  ORDER BY l.shard
  FOR NO KEY UPDATE
)
UPDATE {shards} l
SET lease_until = now() + $3::float8 * interval '1 second'
FROM mine
WHERE l.relay_name = $1 AND l.shard = mine.shard;
