-- :1 id to walk on from, :2 limit, :3 outcome, :4 reason, :5 who; the filter takes the rest. Returns the ids, in order.
-- What is to be changed is looked up first, and locked without waiting. Of two that redrive the same event, one finds the side
-- row gone, or the row no longer DEAD.
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

DELETE f FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {failures} f FORCE INDEX (PRIMARY) ON f.event = postrider_id;

UPDATE JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
SET {set_pending};

DELETE h FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {holds} h FORCE INDEX (PRIMARY) ON h.event = postrider_id;

INSERT INTO {attempts} (event, outcome, error, actor)
SELECT postrider_id, :3, :4, :5 FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked;

SELECT postrider_id
FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
ORDER BY postrider_theirs.{id};
