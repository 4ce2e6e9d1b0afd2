-- $1 claims as JSON: id, token; $2 lease in seconds. Prolongs the claims that still hold, and returns their events' ids. One
-- that is being settled, or that someone else has locked, is left as it is: nobody can claim it meanwhile.
WITH held AS (
  SELECT h.id AS postrider_id, h.token AS postrider_token FROM json_to_recordset($1::text::json) AS h(id text, token text)
), mine AS (
  SELECT postrider_id, $2::float8 AS postrider_lease
  FROM {theirs} postrider_theirs JOIN held ON postrider_theirs.{id} = postrider_id::{id_type}
  WHERE {row_is_claimed} AND {token_of_row} = postrider_token
  FOR NO KEY UPDATE OF postrider_theirs SKIP LOCKED
), renewed AS (
  UPDATE {theirs} postrider_theirs
  SET {set_renewed}
  FROM mine
  WHERE postrider_theirs.{id} = postrider_id::{id_type}
)
SELECT postrider_id
FROM {theirs} postrider_theirs JOIN held ON postrider_theirs.{id} = postrider_id::{id_type}
WHERE {row_is_claimed} AND {token_of_row} = postrider_token;
