-- Parameters: 1 consumer, 2 hash of the key. No row: it is not parked, or is being tried.
UPDATE {keys} SET due_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), revision = revision + 1 WHERE consumer = ?1 AND key_hash = ?2 AND claim_token IS NULL
