-- ? consumer, ? receipts as JSON, each key once, in the order of the keys: whoever locks several locks them in that order.
-- Waits while another transaction applies one of them, for its exclusive lock: a shared one (INSERT IGNORE) that is to become
-- exclusive later would make two that wait for the same into a deadlock. Counts 1 for a new row and 2 for one that it met.
INSERT INTO {receipts} (consumer, dedup_key, event_id, source, duplicates, last_duplicate_at)
SELECT ?, entry.dedup_key, entry.event_id, entry.source, entry.duplicates, IF(entry.duplicates > 0, utc_timestamp(6), NULL)
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  place      FOR ORDINALITY,
  dedup_key  varchar(255) CHARACTER SET utf8mb4 PATH '$.dedup_key',
  event_id   varchar(255) CHARACTER SET utf8mb4 PATH '$.event_id',
  source     text         CHARACTER SET utf8mb4 PATH '$.source',
  duplicates bigint                             PATH '$.duplicates'
)) entry
ORDER BY entry.place
ON DUPLICATE KEY UPDATE
  duplicates = {receipts}.duplicates + entry.duplicates + 1, last_duplicate_at = utc_timestamp(6)
