-- $1 limit.
SELECT coalesce((SELECT a.sink FROM {attempts} a WHERE a.event = e.id AND a.outcome = 'dead' ORDER BY a.id DESC LIMIT 1), ''),
       aggregate_type, event_type, coalesce(last_error, ''), event_id,
       to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       EXISTS (SELECT FROM {holds} h WHERE h.event = e.id AND NOT h.redriven)
FROM {events} e
WHERE status = 'DEAD'
ORDER BY id
LIMIT $1;
