-- ?1 relay name.
SELECT id
FROM {relays}
WHERE relay_name = ?1
  AND strftime('%Y-%m-%d %H:%M:%f', heartbeat_at, printf('+%.3f seconds', lease_seconds)) > strftime('%Y-%m-%d %H:%M:%f', 'now')
ORDER BY id;
