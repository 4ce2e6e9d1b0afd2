-- $1 limit; the filter takes the rest.
SELECT e.id, e.event_id, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, coalesce(e.topic, ''),
       e.payload, e.content_type, e.headers, coalesce(e.dedup_key, ''), e.status, e.retry_count,
       to_char(e.next_attempt_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       coalesce(e.last_error, ''), e.shard, coalesce(e.published_to, ''),
       to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       to_char(e.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       e.status = 'DEAD' AND EXISTS (SELECT FROM {holds} h WHERE h.event = e.id AND NOT h.redriven)
FROM {events} e
WHERE {filter}
ORDER BY e.id
LIMIT $1;
