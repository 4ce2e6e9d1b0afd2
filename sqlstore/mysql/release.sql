-- :1 relay name, :2 member id, :3 leases as JSON.
UPDATE JSON_TABLE(:3, '$[*]' COLUMNS (shard smallint PATH '$.shard', epoch bigint PATH '$.epoch')) held
STRAIGHT_JOIN {shards} l FORCE INDEX (PRIMARY) ON l.relay_name = :1 AND l.shard = held.shard
SET l.owner = NULL, l.lease_until = NULL
WHERE l.owner = :2 AND l.epoch = held.epoch;
