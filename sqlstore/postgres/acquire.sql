-- $1 relay name, $2 member id, $3 lease in seconds, $4 leases as JSON. Returns shard, epoch.
WITH seen AS (
  SELECT * FROM json_to_recordset($4::text::json) AS seen(shard smallint, epoch bigint)
), free AS (
  -- FOR UPDATE shuts out a settle that proves its lease at this moment (FOR KEY SHARE); a shard with such a settle
  -- in progress, or that another member takes just now, is left alone.
  SELECT l.shard
  FROM {shards} l
  WHERE l.relay_name = $1
    AND (l.shard, l.epoch) IN (SELECT shard, epoch FROM seen)
    AND (l.owner IS NULL OR l.lease_until <= now())
  ORDER BY l.shard
  FOR UPDATE SKIP LOCKED
)
UPDATE {shards} l
SET owner = $2, epoch = l.epoch + 1, lease_until = now() + $3::float8 * interval '1 second'
FROM free
WHERE l.relay_name = $1 AND l.shard = free.shard
RETURNING l.shard, l.epoch;
