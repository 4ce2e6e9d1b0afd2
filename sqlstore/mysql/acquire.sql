-- :1 relay name, :2 member id, :3 lease in seconds, :4 leases as JSON. Returns shard, epoch.
-- A shard whose lease a settle proves at this moment, or that another member takes just now, is left alone.
SELECT l.shard
FROM JSON_TABLE(:4, '$[*]' COLUMNS (shard smallint PATH '$.shard', epoch bigint PATH '$.epoch')) seen
STRAIGHT_JOIN {shards} l FORCE INDEX (PRIMARY) ON l.relay_name = :1 AND l.shard = seen.shard
WHERE l.epoch = seen.epoch AND (l.owner IS NULL OR l.lease_until <= utc_timestamp(6))
FOR UPDATE /*!80019 OF l */ SKIP LOCKED;

UPDATE {shards} FORCE INDEX (PRIMARY)
SET owner = :2, epoch = epoch + 1, lease_until = utc_timestamp(6) + INTERVAL round(:3 * 1000000) MICROSECOND
WHERE relay_name = :1 AND shard IN ({picked});

SELECT shard, epoch FROM {shards} WHERE relay_name = :1 AND shard IN ({picked});
