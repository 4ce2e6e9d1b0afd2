-- Parameters: 1 consumer. Returns the key that is due for the longest time.
SELECT key_hash FROM {keys} WHERE consumer = ?1 AND due_at <= strftime('%Y-%m-%d %H:%M:%f', 'now') ORDER BY due_at LIMIT 1
