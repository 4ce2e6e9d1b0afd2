-- :1 limit; the filter takes the rest. The headers come last.
SELECT e.ref, e.event_id, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, coalesce(e.topic, ''),
       e.payload, e.content_type, NULL, coalesce(e.dedup_key, ''),
       e.status, e.retry_count,
       date_format(coalesce(e.next_attempt_at, e.created_at, CAST('1970-01-01' AS DATETIME(6))), '%Y-%m-%dT%H:%i:%s.%fZ'),
       coalesce(e.last_error, ''), e.shard, coalesce(e.published_to, ''),
       date_format(coalesce(e.created_at, CAST('1970-01-01' AS DATETIME(6))), '%Y-%m-%dT%H:%i:%s.%fZ'),
       date_format(e.published_at, '%Y-%m-%dT%H:%i:%s.%fZ'),
       e.status = 'DEAD' AND EXISTS (SELECT 1 FROM {holds} h WHERE h.event = e.ref AND h.event_key = left(e.event_key, 767)), e.headers
FROM {events} e
WHERE {filter}
ORDER BY e.id
LIMIT :1;
