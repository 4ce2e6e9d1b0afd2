-- ?1 number of shards. Returns, for each shard in which something is due or has failed, the oldest such event: the
-- oldest of the first in outbox order, the first that fell due, the first that failed, and those that are claimed.
WITH RECURSIVE numbers(shard) AS (
  SELECT 0 UNION ALL SELECT shard + 1 FROM numbers WHERE shard + 1 < ?1
), heads(id) AS (
  SELECT (
    SELECT e.id FROM {events} e
    WHERE e.shard = numbers.shard AND e.status = 'PENDING' AND e.next_attempt_at <= e.created_at
    ORDER BY e.id
    LIMIT 1
  ) FROM numbers
  UNION
  SELECT (
    SELECT e.id FROM {events} e
    WHERE e.shard = numbers.shard AND e.status = 'PENDING' AND e.next_attempt_at > e.created_at
      AND e.next_attempt_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
    ORDER BY e.next_attempt_at, e.id
    LIMIT 1
  ) FROM numbers
  UNION
  SELECT (
    SELECT e.id FROM {events} e
    WHERE e.shard = numbers.shard AND e.status = 'PENDING' AND coalesce(e.last_error, '') <> ''
    ORDER BY e.id
    LIMIT 1
  ) FROM numbers
  UNION
  SELECT id FROM (SELECT e.id FROM {events} e WHERE e.status = 'PROCESSING' ORDER BY e.processing_until, e.id LIMIT 10000)
), ranked AS (
  SELECT e.*, row_number() OVER (PARTITION BY e.shard ORDER BY e.created_at, coalesce(e.last_error, '') = '', e.id) AS place
  FROM {events} e
  WHERE e.id IN (SELECT id FROM heads)
)
SELECT shard, (julianday('now') - julianday(created_at)) * 86400.0, aggregate_id, event_id, coalesce(last_error, '')
FROM ranked
WHERE place = 1
ORDER BY shard;
