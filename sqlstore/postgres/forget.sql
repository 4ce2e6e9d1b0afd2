-- Members that died without leaving.
DELETE FROM {relays} WHERE heartbeat_at < now() - interval '1 day';
