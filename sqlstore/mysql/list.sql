-- :1 limit; the filter takes the rest.
SELECT e.id, e.event_id, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, coalesce(e.topic, ''),
       e.payload, e.content_type, e.headers, coalesce(e.dedup_key, ''), e.status, e.retry_count,
       date_format(e.next_attempt_at, '%Y-%m-%dT%H:%i:%s.%fZ'),
       coalesce(e.last_error, ''), e.shard, coalesce(e.published_to, ''),
       date_format(e.created_at, '%Y-%m-%dT%H:%i:%s.%fZ'),
       date_format(e.published_at, '%Y-%m-%dT%H:%i:%s.%fZ'),
       e.status = 'DEAD' AND EXISTS (SELECT 1 FROM {holds} h WHERE h.event = e.id)
FROM {events} e
WHERE {filter}
ORDER BY e.id
LIMIT :1;
