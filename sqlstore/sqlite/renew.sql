-- ?1 relay name, ?2 member id, ?3 lease in seconds, ?4 leases as JSON.
UPDATE {shards}
SET lease_until = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?3))
WHERE relay_name = ?1 AND owner = ?2
  AND (shard, epoch) IN (SELECT value ->> 'shard', value ->> 'epoch' FROM json_each(?4));
