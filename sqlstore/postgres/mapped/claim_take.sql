-- $1 candidates as JSON: id, seen (the token of the claim that ran out, if any), token; $2 lease in seconds, $3 member id, $4
-- what is kept about a claim that ran out. Takes those that still are as they were seen, and returns their ids.
WITH candidate AS (
  SELECT * FROM json_to_recordset($1::text::json) AS candidate(id text, seen text, token text)
), taken AS (
  UPDATE {theirs} postrider_theirs
  SET {set_claimed}
  FROM (
    SELECT c.id AS postrider_id, c.seen AS postrider_seen, c.token AS postrider_token, $2::float8 AS postrider_lease FROM candidate c
  ) postrider_candidate
  WHERE postrider_theirs.{id} = postrider_id::{id_type}
    AND (
      postrider_seen IS NULL AND {row_is_pending}
      OR {row_is_claimed} AND {token_of_row} = postrider_seen AND {until_of_row} <= now()
    )
  RETURNING postrider_id AS id, postrider_seen AS seen
), kept AS (
  INSERT INTO {attempts} (event, outcome, error, actor)
  SELECT id, 'retry', $4, $3 FROM taken WHERE seen IS NOT NULL
)
SELECT id FROM taken;
