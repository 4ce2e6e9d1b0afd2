-- ? consumer, ? window in seconds, ? most rows. In READ COMMITTED, so that it locks no gaps into which others insert.
DELETE FROM {receipts}
WHERE consumer = ? AND applied_at < utc_timestamp(6) - INTERVAL ? SECOND
ORDER BY applied_at
LIMIT ?
