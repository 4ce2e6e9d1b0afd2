-- $1 consumer, $2 window in seconds, $3 most rows. One that a duplicate is being counted in waits for the next time.
DELETE FROM {receipts} AS receipt
USING (
  SELECT dedup_key FROM {receipts}
  WHERE consumer = $1 AND applied_at < now() - make_interval(secs => $2::double precision)
  ORDER BY applied_at
  LIMIT $3
  FOR UPDATE SKIP LOCKED
) old
WHERE receipt.consumer = $1 AND receipt.dedup_key = old.dedup_key
