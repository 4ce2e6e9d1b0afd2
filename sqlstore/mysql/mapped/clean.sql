-- :1 id to walk on from, :2 limit, :3 cutoff. Returns the ids that were deleted.
SELECT postrider_ref
FROM (
  SELECT e.id AS postrider_id, e.ref AS postrider_ref, e.their_state AS postrider_their_state
  FROM (SELECT e.id FROM {rows} e WHERE :1 = '' OR e.id > {id_after} ORDER BY e.id LIMIT :2) chunk
  STRAIGHT_JOIN {events} e ON e.id = chunk.id
  WHERE e.status = 'PUBLISHED' AND coalesce(e.published_at, e.created_at) < :3
    OR e.status = 'DISCARDED' AND NOT EXISTS (SELECT 1 FROM {attempts} a WHERE a.event = e.ref AND a.at >= :3)
  LIMIT :2
) postrider_old
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = postrider_id
WHERE {state_of_row} = postrider_their_state
FOR UPDATE /*!80019 OF postrider_theirs */ SKIP LOCKED;

DELETE f FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {failures} f FORCE INDEX (PRIMARY) ON f.event = postrider_id;

DELETE a FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked STRAIGHT_JOIN {attempts} a FORCE INDEX ({index_attempts_event}) ON a.event = postrider_id;

DELETE postrider_theirs
FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given};

SELECT postrider_id FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked;
