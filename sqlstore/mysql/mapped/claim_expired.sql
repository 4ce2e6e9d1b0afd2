-- Gives back events whose claims ran out, some at a time.
SELECT postrider_ref
FROM (
  SELECT e.id AS postrider_id, e.ref AS postrider_ref FROM {rows} e WHERE {state_claimed} AND e.processing_until <= utc_timestamp(6) LIMIT 1000
) postrider_found
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = postrider_id
WHERE {row_is_claimed} AND {until_of_row} <= utc_timestamp(6)
FOR UPDATE /*!80019 OF postrider_theirs */ SKIP LOCKED;

UPDATE JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
SET {set_released};
