-- $1 consumer, $2 receipts as JSON, each key once, in the order of the keys: whoever locks several locks them in that order.
-- Waits while another transaction applies one of them. A receipt that it met has more duplicates than were sent with it.
INSERT INTO {receipts} AS met (consumer, dedup_key, event_id, source, duplicates, last_duplicate_at)
SELECT $1::text, dedup_key, event_id, source, duplicates, CASE WHEN duplicates > 0 THEN now() END
FROM ROWS FROM (json_to_recordset($2::text::json) AS (dedup_key text, event_id text, source text, duplicates bigint)) WITH ORDINALITY
ORDER BY ordinality
ON CONFLICT (dedup_key, consumer) DO UPDATE
SET duplicates = met.duplicates + excluded.duplicates + 1, last_duplicate_at = clock_timestamp()
RETURNING {receipt}
