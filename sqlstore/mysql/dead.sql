-- :1 limit.
SELECT aggregate_type, event_type, coalesce(last_error, ''), event_id, date_format(created_at, '%Y-%m-%dT%H:%i:%s.%fZ')
FROM {events} FORCE INDEX ({index_given_up})
WHERE given_up = 'DEAD'
ORDER BY id
LIMIT :1;
