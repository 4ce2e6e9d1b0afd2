-- :1 event behind which the chunk begins, :2 its last event. Deletes holds whose event is gone or no longer DEAD. A settle that
-- writes the hold anew meanwhile gives it another time.
SELECT h.event
FROM (
  SELECT h.event, h.held_at
  FROM {holds} h FORCE INDEX (PRIMARY)
  LEFT JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = h.event AND e.status = 'DEAD'
  WHERE h.event > :1 AND h.event <= :2 AND e.id IS NULL
) gone
STRAIGHT_JOIN {holds} h FORCE INDEX (PRIMARY) ON h.event = gone.event
WHERE h.held_at = gone.held_at
FOR UPDATE /*!80019 OF h */ SKIP LOCKED;

DELETE h
FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {holds} h FORCE INDEX (PRIMARY) ON h.event = picked.id;
