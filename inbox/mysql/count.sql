-- ? consumer, ? the same, ? most receipts that are counted, the newest.
SELECT json_array(count(*), CAST(coalesce(sum(duplicates), 0) AS signed), (SELECT date_format(min(applied_at), '%Y-%m-%d %H:%i:%s.%f') FROM {receipts} WHERE consumer = ?))
FROM (SELECT duplicates FROM {receipts} WHERE consumer = ? ORDER BY applied_at DESC LIMIT ?) newest
