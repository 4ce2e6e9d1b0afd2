-- $1 limit; the filter takes the rest. The headers come last.
SELECT e.ref, e.event_id, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, coalesce(e.topic, ''),
       e.payload, e.content_type, NULL, coalesce(e.dedup_key, ''),
       e.status, e.retry_count,
       to_char(coalesce(e.next_attempt_at, e.created_at, 'epoch') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       coalesce(e.last_error, ''), e.shard, coalesce(e.published_to, ''),
       to_char(coalesce(e.created_at, 'epoch') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       to_char(e.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       e.status = 'DEAD' AND EXISTS (SELECT FROM {holds} h WHERE h.event = e.ref AND h.event_key = e.event_key), e.headers
FROM {events} e
WHERE {filter}
ORDER BY e.id
LIMIT $1;
