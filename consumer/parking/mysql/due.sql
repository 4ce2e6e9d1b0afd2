-- Parameters: 1 consumer. Returns the key that is due for the longest time.
SELECT key_hash FROM {keys} WHERE consumer = ? AND due_at <= utc_timestamp(6) ORDER BY due_at LIMIT 1
