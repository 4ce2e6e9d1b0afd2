-- :1 relay name, or empty for all.
SELECT r.id, r.relay_name, r.host, r.version, timestampdiff(MICROSECOND, r.heartbeat_at, utc_timestamp(6)) / 1000000,
       (SELECT count(*) FROM {shards} l WHERE l.relay_name = r.relay_name AND l.owner = r.id),
       r.heartbeat_at + INTERVAL round(r.lease_seconds * 1000000) MICROSECOND > utc_timestamp(6), r.sinks, r.claim
FROM {relays} r
WHERE :1 IN ('', r.relay_name)
ORDER BY r.started_at, r.id;
