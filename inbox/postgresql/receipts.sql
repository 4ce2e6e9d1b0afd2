-- $1 dedup key.
SELECT consumer, to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')
FROM {receipts}
WHERE dedup_key = $1
ORDER BY applied_at, consumer
