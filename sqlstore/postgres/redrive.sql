-- $1 outbox id to walk on from, $2 limit, $3 outcome, $4 reason, $5 who; the filter takes the rest. Returns the ids.
-- The array makes the update find its rows by their ids, whatever the statistics say.
WITH picked AS (
  SELECT e.id
  FROM {events} e
  WHERE e.status = 'DEAD' AND e.id > $1::bigint AND {filter}
  ORDER BY e.id
  LIMIT $2
  FOR UPDATE
), changed AS (
  UPDATE {events} e
  SET status = 'PENDING', retry_count = 0, last_error = NULL, next_attempt_at = least(e.created_at, now())
  WHERE e.id = ANY (ARRAY(SELECT id FROM picked)) AND e.status = 'DEAD'
  RETURNING e.id, e.aggregate_id
), released AS (
  DELETE FROM {holds} h USING changed WHERE h.event = changed.id AND h.event > (SELECT min(id) FROM changed)
), marked AS (
  -- The lowest of them becomes the mark by which reads start low enough: see read.sql.
  INSERT INTO {holds} AS h (event, event_key, redriven)
  SELECT id, aggregate_id, true FROM changed ORDER BY id LIMIT 1
  ON CONFLICT (event) DO UPDATE SET redriven = true, held_at = excluded.held_at
)
INSERT INTO {attempts} (event, outcome, error, actor)
SELECT id, $3, $4, $5 FROM changed
RETURNING event;
