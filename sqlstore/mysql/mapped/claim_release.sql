-- :1 claims as JSON: id, token. Gives their events back. One that someone else has locked is left to run out.
SELECT postrider_n
FROM JSON_TABLE(:1, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id',
  postrider_token char(36) CHARACTER SET utf8mb4 PATH '$.token')) postrider_settled
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
WHERE {row_is_claimed} AND {token_of_row} = postrider_token
FOR UPDATE /*!80019 OF postrider_theirs */ SKIP LOCKED;

UPDATE JSON_TABLE(:1, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id')) postrider_settled
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
SET {set_released}
WHERE postrider_n IN ({picked});
