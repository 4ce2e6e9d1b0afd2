-- ?1 consumer, ?2 window in seconds, ?3 most rows.
DELETE FROM {receipts}
WHERE consumer = ?1 AND dedup_key IN (
  SELECT dedup_key FROM {receipts}
  WHERE consumer = ?1 AND applied_at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || ?2 || ' seconds')
  ORDER BY applied_at
  LIMIT ?3
)
