-- $1 claims as JSON: id, token. Gives their events back.
UPDATE {theirs} postrider_theirs
SET {set_released}
FROM (SELECT h.id AS postrider_id, h.token AS postrider_token FROM json_to_recordset($1::text::json) AS h(id text, token text)) postrider_held
WHERE postrider_theirs.{id} = postrider_id::{id_type} AND {row_is_claimed} AND {token_of_row} = postrider_token;
