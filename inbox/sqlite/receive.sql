-- ?1 consumer, ?2 receipts as JSON, each key once. Takes the write lock.
-- A receipt that it met has more duplicates than were sent with it.
INSERT INTO {receipts} AS met (consumer, dedup_key, event_id, source, duplicates, last_duplicate_at)
SELECT ?1, value ->> 'dedup_key', value ->> 'event_id', value ->> 'source', value ->> 'duplicates',
  CASE WHEN value ->> 'duplicates' > 0 THEN strftime('%Y-%m-%d %H:%M:%f', 'now') END
FROM json_each(?2)
WHERE true -- without it ON would be taken for that of a join
ORDER BY key
ON CONFLICT (dedup_key, consumer) DO UPDATE
SET duplicates = met.duplicates + excluded.duplicates + 1, last_duplicate_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
RETURNING {receipt}
