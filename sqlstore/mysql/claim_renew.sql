-- :1 claims as JSON: id, token; :2 lease in seconds. Prolongs the claims that still hold, and returns their events' ids. One
-- that is being settled, or that someone else has locked, is left as it is, and holds unless it has run out.
SELECT e.id
FROM JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', token char(36) CHARACTER SET utf8mb4 PATH '$.token')) held
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = held.id
WHERE e.status = 'PROCESSING' AND e.claim_token = held.token
FOR UPDATE /*!80019 OF e */ SKIP LOCKED;

UPDATE JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = picked.id
SET e.processing_until = utc_timestamp(6) + INTERVAL round(:2 * 1000000) MICROSECOND;

SELECT e.id
FROM JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', token char(36) CHARACTER SET utf8mb4 PATH '$.token')) held
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = held.id
WHERE e.status = 'PROCESSING' AND e.claim_token = held.token AND (e.id IN ({picked}) OR e.processing_until > utc_timestamp(6));
