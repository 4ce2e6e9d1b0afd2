-- Members that died without leaving.
DELETE FROM {relays} WHERE heartbeat_at < utc_timestamp(6) - INTERVAL 1 DAY;
