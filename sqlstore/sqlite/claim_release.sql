-- ?1 claims as JSON: id, token. Gives their events back.
UPDATE {events} AS e
SET status = 'PENDING', claim_token = NULL, processing_until = NULL
FROM json_each(?1) held
WHERE e.id = held.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = held.value ->> 'token';
