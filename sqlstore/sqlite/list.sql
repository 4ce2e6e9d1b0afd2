-- ?1 limit; the filter takes the rest.
SELECT e.id, e.event_id, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, coalesce(e.topic, ''),
       e.payload, e.content_type, e.headers, coalesce(e.dedup_key, ''), e.status, e.retry_count,
       replace(e.next_attempt_at, ' ', 'T') || 'Z',
       coalesce(e.last_error, ''), e.shard, coalesce(e.published_to, ''),
       replace(e.created_at, ' ', 'T') || 'Z',
       replace(e.published_at, ' ', 'T') || 'Z',
       e.status = 'DEAD' AND EXISTS (SELECT 1 FROM {holds} h WHERE h.event = e.id)
FROM {events} e
WHERE {filter}
ORDER BY e.id
LIMIT ?1;
