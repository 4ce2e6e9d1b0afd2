-- $1 limit.
SELECT aggregate_type, event_type, coalesce(last_error, ''), event_id,
       to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
FROM {events}
WHERE status = 'DEAD'
ORDER BY id
LIMIT $1;
