-- :1 id to walk on from, :2 limit, :3 outcome, :4 reason, :5 who; the filter takes the rest. Returns the ids, in order.
-- Locks as in redrive.sql.
SELECT postrider_ref
FROM (
  SELECT e.id AS postrider_id, e.ref AS postrider_ref, e.their_state AS postrider_their_state, e.failed AS postrider_failed
  FROM {events} e
  WHERE e.status = 'DEAD' AND (:1 = '' OR e.id > {id_after}) AND {filter}
  ORDER BY e.id
  LIMIT :2
) postrider_found
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = postrider_id
WHERE {state_of_row} = postrider_their_state
  AND (NOT postrider_failed OR (SELECT f.state FROM {failures} f WHERE f.event = postrider_ref FOR UPDATE) = 'DEAD')
FOR UPDATE /*!80019 OF postrider_theirs */ NOWAIT;

INSERT INTO {failures} (event, event_key, state, their_state, retry_count, next_attempt_at, last_error)
SELECT discarded.event, discarded.event_key, 'DISCARDED', '{their_discarded}', discarded.retry_count, utc_timestamp(6), discarded.last_error
FROM (
  SELECT e.ref AS event, left(e.event_key, 767) AS event_key, e.retry_count, coalesce(e.last_error, '') AS last_error
  FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
  STRAIGHT_JOIN {events} e ON e.id = {id_given}
) discarded
ON DUPLICATE KEY UPDATE
  event_key = discarded.event_key, state = 'DISCARDED', their_state = '{their_discarded}', retry_count = discarded.retry_count,
  last_error = discarded.last_error;

UPDATE JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
SET {set_discarded};

DELETE h FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {holds} h FORCE INDEX (PRIMARY) ON h.event = postrider_id;

INSERT INTO {attempts} (event, outcome, error, actor)
SELECT postrider_id, :3, :4, :5 FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked;

SELECT postrider_id
FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
ORDER BY postrider_theirs.{id};
