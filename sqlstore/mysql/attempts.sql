-- :1 outbox id.
SELECT date_format(at, '%Y-%m-%dT%H:%i:%s.%fZ'), outcome, coalesce(error, ''), coalesce(actor, '')
FROM {attempts}
WHERE event = :1
ORDER BY id;
