-- :1 relay name.
SELECT id
FROM {relays}
WHERE relay_name = :1 AND heartbeat_at + INTERVAL round(lease_seconds * 1000000) MICROSECOND > utc_timestamp(6)
ORDER BY id;
