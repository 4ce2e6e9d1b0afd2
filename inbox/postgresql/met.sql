-- $1 receipts as JSON, $2 consumer.
SELECT {receipt}
FROM {receipts}
WHERE consumer = $2 AND dedup_key = ANY (ARRAY(SELECT entry.dedup_key FROM json_to_recordset($1::text::json) AS entry (dedup_key text)))
