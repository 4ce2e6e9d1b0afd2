-- ?1 outbox id to walk on from, ?2 limit, ?3 outcome, ?4 reason, ?5 who; the filter takes the rest. Returns the ids.
INSERT INTO {attempts} (event, outcome, error, actor)
SELECT e.id, ?3, ?4, ?5
FROM {events} e
WHERE e.status = 'DEAD' AND e.id > ?1 AND {filter}
ORDER BY e.id
LIMIT ?2;

DELETE FROM {holds}
WHERE event IN (
  SELECT e.id FROM {events} e WHERE e.status = 'DEAD' AND e.id > ?1 AND {filter} ORDER BY e.id LIMIT ?2
);

UPDATE {events}
SET status = 'PENDING', retry_count = 0, last_error = NULL,
    next_attempt_at = min(created_at, strftime('%Y-%m-%d %H:%M:%f', 'now'))
WHERE id IN (
  SELECT e.id FROM {events} e WHERE e.status = 'DEAD' AND e.id > ?1 AND {filter} ORDER BY e.id LIMIT ?2
)
RETURNING id;
