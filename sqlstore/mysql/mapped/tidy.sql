-- :1 event behind which the chunk begins, :2 its last event. Deletes side rows whose event is gone, or has come into a state for
-- which they do not hold; holds whose event is gone or not DEAD; then what was kept of events that are gone.
SELECT postrider_ref
FROM (
  SELECT f.event AS postrider_ref, f.event_key, f.their_state, f.next_attempt_at
  FROM {failures} f FORCE INDEX (PRIMARY)
  LEFT JOIN {rows_by_id} e ON e.id = {id_failed} AND left(e.event_key, 767) = f.event_key AND e.settled_state = f.their_state
  WHERE f.event > :1 AND f.event <= :2 AND e.id IS NULL
) gone
STRAIGHT_JOIN {failures} f FORCE INDEX (PRIMARY) ON f.event = postrider_ref
WHERE f.event_key = gone.event_key AND f.their_state = gone.their_state AND f.next_attempt_at = gone.next_attempt_at
FOR UPDATE /*!80019 OF f */ SKIP LOCKED;

DELETE f FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {failures} f FORCE INDEX (PRIMARY) ON f.event = postrider_id;

-- A settle that writes a hold anew meanwhile gives it another time.
SELECT postrider_ref
FROM (
  SELECT f.event AS postrider_ref, f.held_at
  FROM {holds} f FORCE INDEX (PRIMARY)
  LEFT JOIN {events} e ON e.id = {id_failed} AND left(e.event_key, 767) = f.event_key AND e.status = 'DEAD'
  WHERE f.event > :1 AND f.event <= :2 AND e.id IS NULL
) gone
STRAIGHT_JOIN {holds} h FORCE INDEX (PRIMARY) ON h.event = postrider_ref
WHERE h.held_at = gone.held_at
FOR UPDATE /*!80019 OF h */ SKIP LOCKED;

DELETE h FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {holds} h FORCE INDEX (PRIMARY) ON h.event = postrider_id;

SELECT postrider_ref
FROM (
  SELECT f.event AS postrider_ref
  FROM (SELECT DISTINCT event FROM {attempts} FORCE INDEX ({index_attempts_event}) WHERE event > :1 AND event <= :2) f
  LEFT JOIN {rows_by_id} e ON e.id = {id_failed}
  WHERE e.id IS NULL
) gone
STRAIGHT_JOIN {attempts} a FORCE INDEX ({index_attempts_event}) ON a.event = postrider_ref
FOR UPDATE /*!80019 OF a */ SKIP LOCKED;

DELETE a FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {attempts} a FORCE INDEX ({index_attempts_event}) ON a.event = postrider_id;
