-- :1 number of shards. Returns, for each shard in which something is due or has failed, the oldest such event among the
-- first 2,000 in outbox order, the first 1,000 that failed, and those that are being sent.
WITH heads AS (
  {oldest_words}
  UNION
  (SELECT {id_failed} FROM {failures} f WHERE f.state = 'PENDING' LIMIT 1000)
  UNION
  (SELECT e.id FROM {rows} e WHERE {state_busy} LIMIT 10000)
), ranked AS (
  SELECT e.shard, e.created_at, e.event_key, e.event_id, e.last_error,
         row_number() OVER (PARTITION BY e.shard ORDER BY e.created_at, e.id) AS place
  FROM heads STRAIGHT_JOIN {events} e ON e.id = heads.id
  WHERE e.status IN ('PENDING', 'PROCESSING') AND e.shard < :1 AND (e.failed OR e.status = 'PROCESSING' OR e.next_attempt_at IS NULL OR e.next_attempt_at <= utc_timestamp(6))
)
SELECT shard, coalesce(timestampdiff(MICROSECOND, created_at, utc_timestamp(6)) / 1000000, 0), event_key, event_id, coalesce(last_error, '')
FROM ranked
WHERE place = 1
ORDER BY shard;
