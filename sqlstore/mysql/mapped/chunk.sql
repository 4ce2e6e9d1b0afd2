-- :1 id to walk on from, :2 retention in seconds, :3 limit. Returns the last id of the chunk, its number of rows, whether
-- more to delete can lie behind it, and the cutoff. The chunk is read in one place only: MySQL 9.7 has been seen to find
-- nothing in it at a second one.
WITH chunk AS (
  SELECT e.id, e.ref, e.created_at
  FROM {rows} e
  WHERE :1 = '' OR e.id > {id_after}
  ORDER BY e.id
  LIMIT :3
), cutoff AS (
  SELECT utc_timestamp(6) - INTERVAL round(:2 * 1000000) MICROSECOND AS at
), numbered AS (
  SELECT ref, created_at, count(*) OVER () AS many, row_number() OVER (ORDER BY id DESC) AS place FROM chunk
)
SELECT coalesce(last.ref, :1), coalesce(last.many, 0), {can_clean} AND coalesce(NOT {ascends} OR last.created_at < cutoff.at, true),
       date_format(cutoff.at, '%Y-%m-%d %H:%i:%s.%f')
FROM cutoff LEFT JOIN numbered last ON last.place = 1;
