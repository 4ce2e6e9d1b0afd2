-- $1 id to walk on from, $2 limit, $3 outcome, $4 reason, $5 who; the filter takes the rest. Returns the ids, in order.
WITH picked AS (
  SELECT e.id, e.ref, e.their_state, e.failed
  FROM {events} e
  WHERE e.status = 'DEAD' AND ($1::text = '' OR e.id > nullif($1::text, '')::{id_type}) AND {filter}
  ORDER BY e.id
  LIMIT $2
), ours AS (
  DELETE FROM {failures} f USING picked WHERE f.event = picked.ref AND f.state = 'DEAD' RETURNING f.event
), changed AS (
  -- Of two that redrive the same event, one finds the side row gone, or the row no longer DEAD.
  UPDATE {theirs} postrider_theirs
  SET {set_pending}
  FROM (SELECT p.ref AS postrider_id, p.their_state AS postrider_their_state, p.failed AS postrider_failed FROM picked p) postrider_picked
  WHERE postrider_theirs.{id} = postrider_id::{id_type} AND {state_of_row} = postrider_their_state
    AND (NOT postrider_failed OR postrider_id IN (SELECT event FROM ours))
  RETURNING postrider_id AS ref
), released AS (
  DELETE FROM {holds} h USING changed WHERE h.event = changed.ref
), kept AS (
  INSERT INTO {attempts} (event, outcome, error, actor) SELECT ref, $3, $4, $5 FROM changed
)
SELECT picked.ref FROM picked JOIN changed USING (ref) ORDER BY picked.id;
