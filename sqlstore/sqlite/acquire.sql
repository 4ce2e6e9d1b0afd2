-- ?1 relay name, ?2 member id, ?3 lease in seconds, ?4 leases as JSON. Returns shard, epoch.
UPDATE {shards}
SET owner = ?2, epoch = epoch + 1,
    lease_until = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3))
WHERE relay_name = ?1
  AND (shard, epoch) IN (SELECT value ->> 'shard', value ->> 'epoch' FROM json_each(?4))
  AND (owner IS NULL OR lease_until <= strftime('%Y-%m-%d %H:%M:%f', 'now'))
RETURNING shard, epoch;
