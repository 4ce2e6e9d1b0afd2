-- $1 who, $2 reason, $3 consumer, $4 dedup key.
INSERT INTO {audit} (who, action, reason, consumer, dedup_key, applied_at)
SELECT $1::text, 'forget', $2::text, consumer, dedup_key, applied_at
FROM {receipts}
WHERE consumer = $3 AND dedup_key = $4
