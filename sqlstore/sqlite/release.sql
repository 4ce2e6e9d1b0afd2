-- ?1 relay name, ?2 member id, ?3 leases as JSON.
UPDATE {shards}
SET owner = NULL, lease_until = NULL
WHERE relay_name = ?1 AND owner = ?2
  AND (shard, epoch) IN (SELECT value ->> 'shard', value ->> 'epoch' FROM json_each(?3));
