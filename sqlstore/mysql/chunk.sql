-- :1 outbox id to walk on from, :2 retention in seconds, :3 limit. Returns the last id of the chunk, its number of rows,
-- whether its last row was created before the cutoff, and the cutoff.
WITH chunk AS (
  SELECT id FROM {events} FORCE INDEX (PRIMARY) WHERE id > :1 ORDER BY id LIMIT :3
), ends AS (
  SELECT max(id) AS last, count(*) AS n FROM chunk
), cutoff AS (
  SELECT utc_timestamp(6) - INTERVAL round(:2 * 1000000) MICROSECOND AS at
)
SELECT coalesce(last, :1), n, coalesce((SELECT created_at FROM {events} WHERE id = last) < cutoff.at, false),
       date_format(cutoff.at, '%Y-%m-%d %H:%i:%s.%f')
FROM ends, cutoff;
