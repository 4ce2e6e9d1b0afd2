-- $1 claims as JSON: id, token. Gives their events back.
UPDATE {events} e
SET status = 'PENDING', claim_token = NULL, processing_until = NULL
FROM json_to_recordset($1::text::json) AS held(id bigint, token uuid)
WHERE e.id = held.id AND e.status = 'PROCESSING' AND e.claim_token = held.token;
