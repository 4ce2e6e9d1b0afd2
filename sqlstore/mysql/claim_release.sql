-- :1 claims as JSON: id, token. Gives their events back. One that someone else has locked is left to run out.
SELECT e.id
FROM JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', token char(36) CHARACTER SET utf8mb4 PATH '$.token')) held
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = held.id
WHERE e.status = 'PROCESSING' AND e.claim_token = held.token
FOR UPDATE /*!80019 OF e */ SKIP LOCKED;

UPDATE JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = picked.id
SET e.status = 'PENDING', e.claim_token = NULL, e.processing_until = NULL;
