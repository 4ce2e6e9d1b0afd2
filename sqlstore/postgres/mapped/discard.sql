-- $1 id to walk on from, $2 limit, $3 outcome, $4 reason, $5 who; the filter takes the rest. Returns the ids, in order.
WITH picked AS (
  SELECT e.id, e.ref, e.their_state, e.event_key, e.retry_count, coalesce(e.last_error, '') AS last_error
  FROM {events} e
  WHERE e.status = 'DEAD' AND ($1::text = '' OR e.id > nullif($1::text, '')::{id_type}) AND {filter}
  ORDER BY e.id
  LIMIT $2
), changed AS (
  UPDATE {theirs} postrider_theirs
  SET {set_discarded}
  FROM (SELECT p.ref AS postrider_id, p.their_state AS postrider_their_state FROM picked p) postrider_picked
  WHERE postrider_theirs.{id} = postrider_id::{id_type} AND {state_of_row} = postrider_their_state
  RETURNING postrider_id AS ref
), recorded AS (
  INSERT INTO {failures} AS f (event, event_key, state, their_state, retry_count, next_attempt_at, last_error)
  SELECT p.ref, p.event_key, 'DISCARDED', '{their_discarded}', p.retry_count, now(), p.last_error
  FROM picked p JOIN changed USING (ref)
  ON CONFLICT (event) DO UPDATE
  SET event_key = excluded.event_key, state = excluded.state, their_state = excluded.their_state,
      retry_count = excluded.retry_count, last_error = excluded.last_error
), released AS (
  DELETE FROM {holds} h USING changed WHERE h.event = changed.ref
), kept AS (
  INSERT INTO {attempts} (event, outcome, error, actor) SELECT ref, $3, $4, $5 FROM changed
)
SELECT picked.ref FROM picked JOIN changed USING (ref) ORDER BY picked.id;
