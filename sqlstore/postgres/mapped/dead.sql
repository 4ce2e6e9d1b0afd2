-- $1 limit.
SELECT e.aggregate_type, e.event_type, coalesce(e.last_error, ''), e.event_id,
       to_char(coalesce(e.created_at, 'epoch') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
FROM {events} e
WHERE {state_dead}
ORDER BY e.id
LIMIT $1;
