-- ?1 consumer, ?2 the same, ?3 most receipts that are counted, the newest.
SELECT json_array(count(*), CAST(coalesce(sum(duplicates), 0) AS integer), (SELECT min(applied_at) FROM {receipts} WHERE consumer = ?1))
FROM (SELECT duplicates FROM {receipts} WHERE consumer = ?2 ORDER BY applied_at DESC LIMIT ?3) newest
