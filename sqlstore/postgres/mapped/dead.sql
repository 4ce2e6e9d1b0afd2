-- $1 limit.
SELECT coalesce((SELECT a.sink FROM {attempts} a WHERE a.event = e.ref AND a.outcome = 'dead' ORDER BY a.id DESC LIMIT 1), ''),
       e.aggregate_type, e.event_type, coalesce(e.last_error, ''), e.event_id,
       to_char(coalesce(e.created_at, 'epoch') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       EXISTS (SELECT FROM {holds} h WHERE h.event = e.ref AND h.event_key = e.event_key)
FROM {events} e
WHERE {state_dead}
ORDER BY e.id
LIMIT $1;
