-- ?1 receipts as JSON, ?2 consumer.
SELECT {receipt}
FROM {receipts}
WHERE consumer = ?2 AND dedup_key IN (SELECT value ->> 'dedup_key' FROM json_each(?1))
