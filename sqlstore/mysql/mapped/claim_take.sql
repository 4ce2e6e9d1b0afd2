-- :1 candidates as JSON: id, seen (the token of the claim that ran out, if any), token; :2 lease in seconds, :3 member id, :4
-- what is kept about a claim that ran out. Takes those that still are as they were seen, which claim_candidates.sql has
-- locked, and returns their ids.
UPDATE JSON_TABLE(:1, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id',
  postrider_token char(36) CHARACTER SET utf8mb4 PATH '$.token', postrider_seen char(36) CHARACTER SET utf8mb4 PATH '$.seen')) postrider_settled
STRAIGHT_JOIN (SELECT CAST(:2 AS DOUBLE) AS postrider_lease) postrider_lease
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
SET {set_claimed}
WHERE postrider_seen IS NULL AND {row_is_pending}
  OR {row_is_claimed} AND {token_of_row} = postrider_seen AND {until_of_row} <= utc_timestamp(6);

INSERT INTO {attempts} (event, outcome, error, actor)
SELECT postrider_id, 'retry', :4, :3
FROM JSON_TABLE(:1, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id',
  postrider_token char(36) CHARACTER SET utf8mb4 PATH '$.token', postrider_seen char(36) CHARACTER SET utf8mb4 PATH '$.seen')) postrider_settled
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
WHERE postrider_seen IS NOT NULL AND {row_is_claimed} AND {token_of_row} = postrider_token;

SELECT postrider_id
FROM JSON_TABLE(:1, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id',
  postrider_token char(36) CHARACTER SET utf8mb4 PATH '$.token')) postrider_settled
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
WHERE {row_is_claimed} AND {token_of_row} = postrider_token;
