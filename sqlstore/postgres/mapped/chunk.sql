-- $1 id to walk on from, $2 retention in seconds, $3 limit. Returns the last id of the chunk, its number of rows, whether
-- more to delete can lie behind it, and the cutoff.
WITH chunk AS (
  SELECT e.id, e.ref, e.created_at
  FROM {rows} e
  WHERE $1::text = '' OR e.id > nullif($1::text, '')::{id_type}
  ORDER BY e.id
  LIMIT $3
), cutoff AS (
  SELECT now() - $2::float8 * interval '1 second' AS at
)
SELECT coalesce(last.ref, $1::text), (SELECT count(*) FROM chunk), {can_clean} AND coalesce(NOT {ascends} OR last.created_at < cutoff.at, true),
       cutoff.at::text
FROM cutoff LEFT JOIN (SELECT * FROM chunk ORDER BY id DESC LIMIT 1) last ON true;
