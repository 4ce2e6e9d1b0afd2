-- ?1 shards, ?2 their floors (not needed here), ?3 ids in flight, ?4 kinds to skip, ?5 keys to skip, all as JSON;
-- ?6 limit per shard, ?7 limit.
-- CROSS JOIN keeps the order of the shards, and IN goes through each shard's ids in ascending order.
SELECT e.id, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, e.headers, e.retry_count,
       (julianday('now') - julianday(e.created_at)) * 86400.0,
       CASE
         WHEN coalesce(e.aggregate_version, 1) <= 1 THEN NULL
         WHEN e.aggregate_version - 1 <= left_version.version THEN NULL
         -- It waits earlier in the outbox, or nothing of the aggregate has left and nothing lower waits.
         WHEN EXISTS (
           SELECT 1 FROM {events} p
           WHERE p.aggregate_id = e.aggregate_id AND p.aggregate_version = e.aggregate_version - 1 AND p.status = 'PENDING'
             AND p.aggregate_type = e.aggregate_type AND p.id < e.id
         ) THEN NULL
         WHEN left_version.version IS NULL AND NOT EXISTS (
           SELECT 1 FROM {events} p
           WHERE p.aggregate_id = e.aggregate_id AND p.aggregate_version < e.aggregate_version AND p.status = 'PENDING'
             AND p.aggregate_type = e.aggregate_type
         ) THEN NULL
         ELSE e.aggregate_version - 1
       END
FROM json_each(?1) owned
CROSS JOIN {events} e
LEFT JOIN {versions} left_version
  ON e.aggregate_version IS NOT NULL
  AND left_version.aggregate_type = e.aggregate_type AND left_version.aggregate_id = e.aggregate_id
WHERE e.id IN (
  -- The two halves are disjoint, and each follows one index from its lowest entry.
  SELECT id FROM (
    SELECT r.id
    FROM {events} r
    WHERE r.shard = owned.value AND r.status = 'PENDING' AND r.next_attempt_at <= r.created_at
      AND r.next_attempt_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
      AND r.id NOT IN (SELECT value FROM json_each(?3))
      AND r.aggregate_id NOT IN (SELECT value FROM json_each(?5))
      AND r.aggregate_id NOT IN (SELECT event_key FROM {holds})
      AND (r.aggregate_type, r.event_type) NOT IN (SELECT value ->> 'aggregate_type', value ->> 'event_type' FROM json_each(?4))
      AND NOT EXISTS (
        SELECT 1 FROM {events} b
        WHERE b.aggregate_id = r.aggregate_id AND b.id < r.id AND b.status = 'PENDING' AND b.last_error IS NOT NULL
          AND (b.aggregate_type = r.aggregate_type AND b.aggregate_version > r.aggregate_version) IS NOT TRUE
      )
    ORDER BY r.id
    LIMIT ?6
  )
  UNION ALL
  SELECT id FROM (
    SELECT w.id
    FROM {events} w
    WHERE w.shard = owned.value AND w.status = 'PENDING' AND w.next_attempt_at > w.created_at
      AND w.next_attempt_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
      AND w.id NOT IN (SELECT value FROM json_each(?3))
      AND w.aggregate_id NOT IN (SELECT value FROM json_each(?5))
      AND w.aggregate_id NOT IN (SELECT event_key FROM {holds})
      AND (w.aggregate_type, w.event_type) NOT IN (SELECT value ->> 'aggregate_type', value ->> 'event_type' FROM json_each(?4))
      AND NOT EXISTS (
        SELECT 1 FROM {events} b
        WHERE b.aggregate_id = w.aggregate_id AND b.id < w.id AND b.status = 'PENDING' AND b.last_error IS NOT NULL
          AND (b.aggregate_type = w.aggregate_type AND b.aggregate_version > w.aggregate_version) IS NOT TRUE
      )
    ORDER BY w.next_attempt_at, w.id
    LIMIT ?6
  )
  ORDER BY id
  LIMIT ?6
)
LIMIT ?7;
