-- $1 event id, which may be the dedup key as well.
SELECT {receipt}
FROM {receipts}
WHERE dedup_key = $1 OR event_id = $1
ORDER BY applied_at, consumer, dedup_key
