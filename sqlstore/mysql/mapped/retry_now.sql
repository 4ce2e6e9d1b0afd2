-- :1 id to walk on from, :2 limit, :3 outcome, :4 reason, :5 who; the filter takes the rest. Returns the ids, in order.
SELECT postrider_ref
FROM (
  SELECT e.ref AS postrider_ref
  FROM (SELECT {id_failed} AS id FROM {failures} f WHERE f.state = 'PENDING') failed
  STRAIGHT_JOIN {events} e ON e.id = failed.id
  WHERE {state_pending} AND e.failed AND (:1 = '' OR e.id > {id_after}) AND {filter}
  ORDER BY e.id
  LIMIT :2
) found
STRAIGHT_JOIN {failures} f FORCE INDEX (PRIMARY) ON f.event = postrider_ref
WHERE f.state = 'PENDING'
FOR UPDATE /*!80019 OF f */ NOWAIT;

UPDATE JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
STRAIGHT_JOIN {failures} f FORCE INDEX (PRIMARY) ON f.event = postrider_id
SET f.next_attempt_at = utc_timestamp(6);

INSERT INTO {attempts} (event, outcome, error, actor)
SELECT postrider_id, :3, :4, :5 FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked;

SELECT postrider_id
FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
ORDER BY postrider_theirs.{id};
