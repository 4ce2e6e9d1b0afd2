-- ?1 limit.
SELECT aggregate_type, event_type, coalesce(last_error, ''), event_id, replace(created_at, ' ', 'T') || 'Z'
FROM {events}
WHERE status = 'DEAD'
ORDER BY id
LIMIT ?1;
