-- :1 relay name.
SELECT shard, epoch, coalesce(owner, ''), coalesce(lease_until <= utc_timestamp(6), false)
FROM {shards}
WHERE relay_name = :1
ORDER BY shard;
