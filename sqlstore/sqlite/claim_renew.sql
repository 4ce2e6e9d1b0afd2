-- ?1 claims as JSON: id, token; ?2 lease in seconds. Prolongs the claims that still hold, and returns their events' ids.
UPDATE {events} AS e
SET processing_until = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?2))
FROM json_each(?1) held
WHERE e.id = held.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = held.value ->> 'token'
RETURNING id;
