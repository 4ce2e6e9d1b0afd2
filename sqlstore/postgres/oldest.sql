-- $1 number of shards. Returns, for each shard in which something is due or has failed, the oldest such event: the
-- oldest of the first in outbox order, the first that fell due, the first that failed, and those that are claimed.
SELECT DISTINCT ON (head.shard) head.shard, CASE WHEN isfinite(head.created_at) THEN extract(epoch FROM now() - head.created_at) ELSE 0 END::float8, head.aggregate_id,
       head.event_id, coalesce(head.last_error, '')
FROM (
  SELECT pending.*
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
      WHERE e.shard = s.shard AND e.status = 'PENDING' AND coalesce(e.last_error, '') <> ''
      ORDER BY e.id
      LIMIT 1
    )
  ) pending
  UNION ALL
  (
    SELECT e.shard, e.created_at, e.aggregate_id, e.event_id, e.last_error
    FROM {events} e
    WHERE e.status = 'PROCESSING'
    ORDER BY e.processing_until, e.id
    LIMIT 10000
  )
) head
ORDER BY head.shard, head.created_at, coalesce(head.last_error, '') = '';
