-- :1 limit.
SELECT coalesce((
         SELECT a.sink
         FROM {attempts} a FORCE INDEX (PRIMARY)
         WHERE a.id = (SELECT max(d.id) FROM {attempts} d FORCE INDEX ({index_attempts_event}) WHERE d.event = e.ref AND d.outcome = 'dead')
       ), ''),
       e.aggregate_type, e.event_type, coalesce(e.last_error, ''), e.event_id,
       date_format(coalesce(e.created_at, CAST('1970-01-01' AS DATETIME(6))), '%Y-%m-%dT%H:%i:%s.%fZ'),
       EXISTS (SELECT 1 FROM {holds} h WHERE h.event = e.ref AND h.event_key = left(e.event_key, 767))
FROM {events} e
WHERE {state_dead}
ORDER BY e.id
LIMIT :1;
