-- $1 claims as JSON: id, token; $2 lease in seconds. Prolongs the claims that still hold, and returns their events' ids. One
-- that is being settled, or that someone else has locked, is left as it is: nobody can claim it meanwhile.
WITH held AS (
  SELECT * FROM json_to_recordset($1::text::json) AS held(id bigint, token uuid)
), mine AS (
  SELECT e.id
  FROM {events} e JOIN held ON e.id = held.id AND e.claim_token = held.token
  WHERE e.status = 'PROCESSING'
  FOR NO KEY UPDATE OF e SKIP LOCKED
), renewed AS (
  UPDATE {events} e
  SET processing_until = now() + $2::float8 * interval '1 second'
  FROM mine
  WHERE e.id = mine.id
)
SELECT e.id
FROM {events} e JOIN held ON e.id = held.id AND e.claim_token = held.token
WHERE e.status = 'PROCESSING';
