-- ?1 dedup key.
SELECT consumer, applied_at
FROM {receipts}
WHERE dedup_key = ?1
ORDER BY applied_at, consumer
