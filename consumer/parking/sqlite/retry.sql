-- Parameters: 1 consumer, 2 hash of the key. Locks it and makes it due at once; one that is claimed is due once its claim is given back.
-- No row: it is not parked.
UPDATE {keys} SET due_at = CASE WHEN claim_token IS NULL THEN strftime('%Y-%m-%d %H:%M:%f', 'now') ELSE due_at END, asked = 1, revision = revision + 1
WHERE consumer = ?1 AND key_hash = ?2
