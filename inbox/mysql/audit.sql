-- ? who, ? reason, ? consumer, ? dedup key.
INSERT INTO {audit} (who, action, reason, consumer, dedup_key, applied_at)
SELECT ?, 'forget', ?, consumer, dedup_key, applied_at
FROM {receipts}
WHERE consumer = ? AND dedup_key = ?
