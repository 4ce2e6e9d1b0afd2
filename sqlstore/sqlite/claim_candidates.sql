-- ?1 shards, ?2 kinds to skip, ?3 keys to skip, all as JSON; ?4 limit, ?5 limit of the events that are to be claimed alone.
-- Returns events that can be claimed as read.sql does, each with the token of the claim that ran out.
SELECT e.id, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, e.headers, e.retry_count, (julianday('now') - julianday(e.created_at)) * 86400.0, NULL,
       CASE WHEN e.status = 'PROCESSING' THEN coalesce(e.claim_token, '') ELSE '' END
FROM (
  -- Each part follows one index from its lowest entry.
  SELECT id FROM (
    SELECT p.id
    FROM {events} p
    WHERE p.status = 'PROCESSING' AND p.processing_until <= strftime('%Y-%m-%d %H:%M:%f', 'now') AND substr(p.claim_token, -2) = '00'
      AND p.aggregate_id NOT IN (SELECT value FROM json_each(?3))
      AND (p.aggregate_type, p.event_type) NOT IN (SELECT value ->> 'aggregate_type', value ->> 'event_type' FROM json_each(?2))
    ORDER BY p.processing_until, p.id
    LIMIT ?4
  )
  UNION ALL
  SELECT id FROM (
    SELECT p.id
    FROM {events} p
    WHERE p.status = 'PROCESSING' AND p.processing_until <= strftime('%Y-%m-%d %H:%M:%f', 'now') AND substr(p.claim_token, -2) <> '00'
      AND p.aggregate_id NOT IN (SELECT value FROM json_each(?3))
      AND (p.aggregate_type, p.event_type) NOT IN (SELECT value ->> 'aggregate_type', value ->> 'event_type' FROM json_each(?2))
    ORDER BY p.processing_until, p.id
    LIMIT ?5
  )
  UNION ALL
  SELECT pending.id
  FROM json_each(?1) s
  CROSS JOIN {events} pending
  WHERE pending.id IN (
    SELECT id FROM (
      SELECT r.id
      FROM {events} r
      WHERE r.shard = s.value AND r.status = 'PENDING' AND r.next_attempt_at <= r.created_at
        AND r.next_attempt_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
        AND r.aggregate_id NOT IN (SELECT value FROM json_each(?3))
        AND (r.aggregate_type, r.event_type) NOT IN (SELECT value ->> 'aggregate_type', value ->> 'event_type' FROM json_each(?2))
      ORDER BY r.id
      LIMIT ?4
    )
    UNION ALL
    SELECT id FROM (
      SELECT w.id
      FROM {events} w
      WHERE w.shard = s.value AND w.status = 'PENDING' AND w.next_attempt_at > w.created_at
        AND w.next_attempt_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
        AND w.aggregate_id NOT IN (SELECT value FROM json_each(?3))
        AND (w.aggregate_type, w.event_type) NOT IN (SELECT value ->> 'aggregate_type', value ->> 'event_type' FROM json_each(?2))
      ORDER BY w.next_attempt_at, w.id
      LIMIT ?4
    )
  )
  LIMIT ?4
) candidate
CROSS JOIN {events} e ON e.id = candidate.id;
