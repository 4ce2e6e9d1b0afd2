-- $1 id to walk on from, $2 limit, $3 outcome, $4 reason, $5 who; the filter takes the rest. Returns the ids, in order.
WITH picked AS (
  SELECT e.id, e.ref
  FROM {events} e
  WHERE {state_pending} AND e.failed AND e.ref IN (SELECT event FROM {failures} WHERE state = 'PENDING')
    AND ($1::text = '' OR e.id > nullif($1::text, '')::{id_type}) AND {filter}
  ORDER BY e.id
  LIMIT $2
), changed AS (
  UPDATE {failures} f SET next_attempt_at = now() FROM picked
  WHERE f.event = picked.ref AND f.state = 'PENDING'
  RETURNING f.event AS ref
), kept AS (
  INSERT INTO {attempts} (event, outcome, error, actor) SELECT ref, $3, $4, $5 FROM changed
)
SELECT picked.ref FROM picked JOIN changed USING (ref) ORDER BY picked.id;
