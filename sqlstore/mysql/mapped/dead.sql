-- :1 limit.
SELECT coalesce((SELECT a.sink FROM {attempts} a WHERE a.event = e.ref AND a.outcome = 'dead' ORDER BY a.id DESC LIMIT 1), ''),
       e.aggregate_type, e.event_type, coalesce(e.last_error, ''), e.event_id,
       date_format(coalesce(e.created_at, CAST('1970-01-01' AS DATETIME(6))), '%Y-%m-%dT%H:%i:%s.%fZ'),
       EXISTS (SELECT 1 FROM {holds} h WHERE h.event = e.ref AND h.event_key = left(e.event_key, 767))
FROM {events} e
WHERE {state_dead}
ORDER BY e.id
LIMIT :1;
