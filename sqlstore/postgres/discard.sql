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
  SET status = 'DISCARDED'
  WHERE e.id = ANY (ARRAY(SELECT id FROM picked)) AND e.status = 'DEAD'
  RETURNING e.id
), released AS (
  DELETE FROM {holds} h USING changed WHERE h.event = changed.id
)
INSERT INTO {attempts} (event, outcome, error, actor)
SELECT id, $3, $4, $5 FROM changed
RETURNING event;
