-- :1 relay name, :2 member id, :3 lease in seconds, :4 leases as JSON, in the order of the shards, so that two statements
-- never lock each other out.
UPDATE JSON_TABLE(:4, '$[*]' COLUMNS (shard smallint PATH '$.shard', epoch bigint PATH '$.epoch')) held
STRAIGHT_JOIN {shards} l FORCE INDEX (PRIMARY) ON l.relay_name = :1 AND l.shard = held.shard
SET l.lease_until = utc_timestamp(6) + INTERVAL round(:3 * 1000000) MICROSECOND
WHERE l.owner = :2 AND l.epoch = held.epoch;
