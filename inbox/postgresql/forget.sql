-- $1 consumer, $2 dedup key.
DELETE FROM {receipts} WHERE consumer = $1 AND dedup_key = $2
