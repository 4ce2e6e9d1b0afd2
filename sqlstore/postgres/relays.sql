-- $1 relay name, or empty for all.
SELECT r.id, r.relay_name, r.host, r.version, extract(epoch FROM now() - r.heartbeat_at)::float8,
       (SELECT count(*) FROM {shards} l WHERE l.relay_name = r.relay_name AND l.owner = r.id),
       r.heartbeat_at + r.lease_seconds * interval '1 second' > now(), r.sinks, r.claim
FROM {relays} r
WHERE $1 IN ('', r.relay_name)
ORDER BY r.started_at, r.id;
