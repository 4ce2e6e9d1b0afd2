-- :1 claims as JSON: id, token; :2 lease in seconds. Prolongs the claims that still hold, and returns their events' ids. One
-- that is being settled, or that someone else has locked, is left as it is, and holds unless it has run out.
SELECT postrider_n
FROM JSON_TABLE(:1, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id',
  postrider_token char(36) CHARACTER SET utf8mb4 PATH '$.token')) postrider_settled
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
WHERE {row_is_claimed} AND {token_of_row} = postrider_token
FOR UPDATE /*!80019 OF postrider_theirs */ SKIP LOCKED;

UPDATE JSON_TABLE(:1, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id')) postrider_settled
STRAIGHT_JOIN (SELECT CAST(:2 AS DOUBLE) AS postrider_lease) postrider_lease
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
SET {set_renewed}
WHERE postrider_n IN ({picked});

SELECT postrider_id
FROM JSON_TABLE(:1, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id',
  postrider_token char(36) CHARACTER SET utf8mb4 PATH '$.token')) postrider_settled
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
WHERE {row_is_claimed} AND {token_of_row} = postrider_token AND (postrider_n IN ({picked}) OR {until_of_row} > utc_timestamp(6));
