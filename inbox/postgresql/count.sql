-- $1 consumer, $2 the same, $3 most receipts that are counted, the newest.
SELECT json_build_array(count(*), CAST(coalesce(sum(duplicates), 0) AS bigint), (SELECT to_char(min(applied_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') FROM {receipts} WHERE consumer = $1))::text
FROM (SELECT duplicates FROM {receipts} WHERE consumer = $2 ORDER BY applied_at DESC LIMIT $3) newest
