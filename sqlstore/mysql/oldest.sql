-- :1 number of shards. Returns, for each shard in which something is due or has failed, the oldest such event: the
-- oldest of the first in outbox order, the first that fell due, the first that failed, and those that are claimed.
WITH numbers AS (
  SELECT n - 1 AS shard FROM JSON_TABLE(concat('[0', repeat(',0', :1 - 1), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) list
), heads AS (
  SELECT (
    SELECT e.id FROM {events} e FORCE INDEX ({index_ready})
    WHERE e.ready_shard = numbers.shard
    ORDER BY e.ready_shard, e.id
    LIMIT 1
  ) AS id FROM numbers
  UNION
  SELECT (
    SELECT e.id FROM {events} e FORCE INDEX ({index_waiting})
    WHERE e.waiting_shard = numbers.shard AND e.next_attempt_at <= utc_timestamp(6)
    ORDER BY e.waiting_shard, e.next_attempt_at, e.id
    LIMIT 1
  ) FROM numbers
  UNION
  SELECT (
    SELECT e.id FROM {events} e FORCE INDEX ({index_failed})
    WHERE e.failed_shard = numbers.shard
    ORDER BY e.failed_shard, e.id
    LIMIT 1
  ) FROM numbers
  UNION
  (SELECT id FROM {events} FORCE INDEX ({index_processing}) WHERE processing_due IS NOT NULL ORDER BY processing_due, id LIMIT 10000)
), ranked AS (
  SELECT e.shard, e.created_at, e.aggregate_id, e.event_id, e.last_error,
         row_number() OVER (PARTITION BY e.shard ORDER BY e.created_at, coalesce(e.last_error, '') = '', e.id) AS place
  FROM heads STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = heads.id
)
SELECT shard, timestampdiff(MICROSECOND, created_at, utc_timestamp(6)) / 1000000, aggregate_id, event_id, coalesce(last_error, '')
FROM ranked
WHERE place = 1
ORDER BY shard;
