-- $1 number of shards. Returns, for each shard in which something is due or has failed, the oldest such event: the
-- oldest of the first in outbox order, the first that fell due, and the first that failed.
SELECT DISTINCT ON (head.shard) head.shard, extract(epoch FROM now() - head.created_at)::float8, head.aggregate_id,
       head.event_id, coalesce(head.last_error, '')
FROM generate_series(0, $1::int - 1) AS s(shard)
CROSS JOIN LATERAL (
  (
    SELECT e.shard, e.created_at, e.aggregate_id, e.event_id, e.last_error
    FROM {events} e
    WHERE e.shard = s.shard AND e.status = 'PENDING' AND e.next_attempt_at <= e.created_at
    ORDER BY e.id
    LIMIT 1
  )
  UNION ALL
  (
    SELECT e.shard, e.created_at, e.aggregate_id, e.event_id, e.last_error
    FROM {events} e
    WHERE e.shard = s.shard AND e.status = 'PENDING' AND e.next_attempt_at > e.created_at AND e.next_attempt_at <= now()
    ORDER BY e.next_attempt_at, e.id
    LIMIT 1
  )
  UNION ALL
  (
    SELECT e.shard, e.created_at, e.aggregate_id, e.event_id, e.last_error
    FROM {events} e
    WHERE e.shard = s.shard AND e.status = 'PENDING' AND e.retry_count > 0
    ORDER BY e.id
    LIMIT 1
  )
) head
ORDER BY head.shard, head.created_at;
