-- Members that died without leaving.
DELETE FROM {relays} WHERE heartbeat_at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day');
