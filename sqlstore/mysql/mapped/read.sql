-- :1 to :6 stand in the statement itself, in the parts of which read_word.sql is one for each word; :7 limit. Returns the
-- events of all these shards in outbox order, their headers and keys last.
WITH waiting AS (
  SELECT p.aggregate_type, p.aggregate_id, p.aggregate_version, p.ord, p.id
  FROM {rows} p
  WHERE {pending_p} AND p.aggregate_version IS NOT NULL
    AND coalesce((
      SELECT 1 FROM {failures} f WHERE f.event = p.ref AND f.event_key = left(p.event_key, 767) AND f.their_state = 'PENDING' AND f.state <> 'PENDING'
    ), 0) = 0
)
SELECT e.ref, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, NULL,
       coalesce(f.retry_count, 0), coalesce(timestampdiff(MICROSECOND, e.created_at, utc_timestamp(6)) / 1000000, 0),
       CASE
         WHEN coalesce(e.aggregate_version, 1) <= 1 THEN NULL
         WHEN e.aggregate_version - 1 <= v.version THEN NULL
         -- It waits earlier in the outbox, or nothing of the aggregate has left and nothing lower waits.
         WHEN EXISTS (
           SELECT 1 FROM waiting p
           WHERE p.aggregate_id = e.aggregate_id AND p.aggregate_version = e.aggregate_version - 1
             AND p.aggregate_type = e.aggregate_type AND (p.ord < e.ord OR p.ord = e.ord AND p.id < e.id)
         ) THEN NULL
         WHEN v.version IS NULL AND NOT EXISTS (
           SELECT 1 FROM waiting p
           WHERE p.aggregate_id = e.aggregate_id AND p.aggregate_version < e.aggregate_version
             AND p.aggregate_type = e.aggregate_type
         ) THEN NULL
         ELSE e.aggregate_version - 1
       END,
       e.headers, e.event_key
FROM (
  SELECT id, ord FROM (
    {read_words}
  ) found
  ORDER BY ord, id
  LIMIT :7
) found
STRAIGHT_JOIN {rows} e ON e.id = found.id
LEFT JOIN {failures} f ON f.event = e.ref AND f.event_key = left(e.event_key, 767) AND f.their_state = 'PENDING'
LEFT JOIN {versions} v
  ON e.aggregate_version IS NOT NULL AND v.aggregate_type = left(e.aggregate_type, 255) AND v.aggregate_id = left(e.aggregate_id, 512)
ORDER BY found.ord, found.id;
