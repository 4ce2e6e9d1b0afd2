-- Those that have registered, and those that have receipts: they are found by one step in the index for each.
WITH RECURSIVE seen AS (
  SELECT min(consumer) AS consumer FROM {receipts}
  UNION ALL
  SELECT (SELECT min(next.consumer) FROM {receipts} next WHERE next.consumer > seen.consumer) FROM seen WHERE seen.consumer IS NOT NULL
), named AS (
  SELECT consumer FROM seen WHERE consumer IS NOT NULL
  UNION
  SELECT consumer FROM {consumers}
)
SELECT json_build_array(named.consumer, known.window_seconds, to_char(known.cleaned_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'))::text
FROM named
LEFT JOIN {consumers} known ON known.consumer = named.consumer
ORDER BY named.consumer
