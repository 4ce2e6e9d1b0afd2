-- ?1 relay name, or empty for all.
SELECT r.id, r.relay_name, r.host, r.version, (julianday('now') - julianday(r.heartbeat_at)) * 86400.0,
       (SELECT count(*) FROM {shards} l WHERE l.relay_name = r.relay_name AND l.owner = r.id),
       strftime('%Y-%m-%d %H:%M:%f', r.heartbeat_at, printf('+%.3f seconds', r.lease_seconds)) > strftime('%Y-%m-%d %H:%M:%f', 'now'),
       r.sinks, r.claim
FROM {relays} r
WHERE ?1 IN ('', r.relay_name)
ORDER BY r.started_at, r.id;
