-- $1 consumer, $2 dedup key. No row: it is a duplicate. Waits while another transaction applies the same.
INSERT INTO {receipts} (consumer, dedup_key) VALUES ($1, $2) ON CONFLICT (dedup_key, consumer) DO NOTHING
