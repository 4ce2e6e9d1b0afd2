-- $1 outbox id to walk on from, $2 retention in seconds, $3 limit. Returns the last id of the chunk, its number of rows,
-- whether its last row was created before the cutoff, and the cutoff.
WITH chunk AS (
  SELECT id, created_at FROM {events} WHERE id > $1::bigint ORDER BY id LIMIT $3
), ends AS (
  SELECT max(id) AS last, count(*) AS rows FROM chunk
), cutoff AS (
  SELECT now() - $2::float8 * interval '1 second' AS at
)
SELECT coalesce(last, $1::bigint), rows,
       coalesce((SELECT created_at FROM chunk WHERE id = last) < cutoff.at, false), cutoff.at::text
FROM ends, cutoff;
