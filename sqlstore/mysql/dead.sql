-- :1 limit.
SELECT coalesce((
         SELECT a.sink
         FROM {attempts} a FORCE INDEX (PRIMARY)
         WHERE a.id = (SELECT max(d.id) FROM {attempts} d FORCE INDEX ({index_attempts_event}) WHERE d.event = e.id AND d.outcome = 'dead')
       ), ''),
       aggregate_type, event_type, coalesce(last_error, ''), event_id, date_format(created_at, '%Y-%m-%dT%H:%i:%s.%fZ'),
       EXISTS (SELECT 1 FROM {holds} h WHERE h.event = e.id)
FROM {events} e FORCE INDEX ({index_given_up})
WHERE given_up = 'DEAD'
ORDER BY id
LIMIT :1;
