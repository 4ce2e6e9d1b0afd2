-- ?1 relay name.
SELECT shard, epoch, coalesce(owner, ''), coalesce(lease_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'), false)
FROM {shards}
WHERE relay_name = ?1
ORDER BY shard;
