-- Side rows whose event is gone, or has come into a state for which they do not hold; then what was kept of events that are
-- gone. Some at a time.
SELECT postrider_ref
FROM (
  SELECT f.event AS postrider_ref, f.their_state, f.next_attempt_at
  FROM {failures} f
  LEFT JOIN {rows} e ON e.id = {id_failed} AND e.settled_state = f.their_state
  WHERE e.id IS NULL
  LIMIT 1000
) gone
STRAIGHT_JOIN {failures} f FORCE INDEX (PRIMARY) ON f.event = postrider_ref
WHERE f.their_state = gone.their_state AND f.next_attempt_at = gone.next_attempt_at
FOR UPDATE /*!80019 OF f */ SKIP LOCKED;

DELETE f FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {failures} f FORCE INDEX (PRIMARY) ON f.event = postrider_id;

SELECT postrider_ref
FROM (
  SELECT f.event AS postrider_ref
  FROM (SELECT DISTINCT event FROM {attempts}) f
  LEFT JOIN {rows} e ON e.id = {id_failed}
  WHERE e.id IS NULL
  LIMIT 1000
) gone
STRAIGHT_JOIN {attempts} a FORCE INDEX ({index_attempts_event}) ON a.event = postrider_ref
FOR UPDATE /*!80019 OF a */ SKIP LOCKED;

DELETE a FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {attempts} a FORCE INDEX ({index_attempts_event}) ON a.event = postrider_id;
