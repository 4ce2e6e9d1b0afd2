-- $1 relay name.
SELECT id
FROM {relays}
WHERE relay_name = $1 AND heartbeat_at + lease_seconds * interval '1 second' > now()
ORDER BY id COLLATE "C";
