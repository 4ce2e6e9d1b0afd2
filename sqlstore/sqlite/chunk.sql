-- ?1 outbox id to walk on from, ?2 retention in seconds, ?3 limit. Returns the last id of the chunk, its number of rows,
-- whether its last row was created before the cutoff, and the cutoff.
WITH chunk AS (
  SELECT id FROM {events} WHERE id > ?1 ORDER BY id LIMIT ?3
), ends AS (
  SELECT max(id) AS last, count(*) AS rows FROM chunk
), cutoff(at) AS (
  SELECT strftime('%Y-%m-%d %H:%M:%f', 'now', printf('-%.3f seconds', ?2))
)
SELECT coalesce(last, ?1), rows, coalesce((SELECT created_at FROM {events} WHERE id = last) < cutoff.at, false), cutoff.at
FROM ends, cutoff;
