-- Parameters: 1 consumer, 2 hash of the key. No row: it is not parked, or is being tried.
UPDATE {keys} SET due_at = utc_timestamp(6), revision = revision + 1 WHERE consumer = ? AND key_hash = ? AND claim_token IS NULL
