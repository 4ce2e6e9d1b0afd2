-- :1 outbox id to walk on from, :2 limit, :3 outcome, :4 reason, :5 who; the filter takes the rest. Returns the ids.
-- What is to be changed is looked up first, and locked without waiting: a locking read would lock all that it sorts.
SELECT e.id
FROM (
  SELECT e.id
  FROM {events} e FORCE INDEX ({index_given_up})
  WHERE e.given_up = 'DEAD' AND e.id > :1 AND {filter}
  ORDER BY e.id
  LIMIT :2
) found
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = found.id
WHERE e.status = 'DEAD'
FOR UPDATE /*!80019 OF e */ NOWAIT;

UPDATE JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = picked.id
SET e.status = 'PENDING', e.retry_count = 0, e.last_error = NULL, e.next_attempt_at = least(e.created_at, utc_timestamp(6));

DELETE h
FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {holds} h FORCE INDEX (PRIMARY) ON h.event = picked.id;

INSERT INTO {attempts} (event, outcome, error, actor)
SELECT id, :3, :4, :5 FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked WHERE id IS NOT NULL;

SELECT id FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked WHERE id IS NOT NULL;
