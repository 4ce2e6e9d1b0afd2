-- ? consumer, ? dedup key.
DELETE FROM {receipts} WHERE consumer = ? AND dedup_key = ?
