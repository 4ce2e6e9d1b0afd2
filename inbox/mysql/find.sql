-- ? and ? event id, which may be the dedup key as well.
SELECT {receipt}
FROM {receipts}
WHERE dedup_key = ? OR event_id = ?
ORDER BY applied_at, consumer, dedup_key
