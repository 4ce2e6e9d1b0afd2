-- Gives back events whose claims ran out, some at a time.
SELECT id
FROM {events} FORCE INDEX ({index_processing})
WHERE processing_due <= utc_timestamp(6) AND processing_until <= utc_timestamp(6)
ORDER BY processing_due, id
LIMIT 1000
FOR UPDATE SKIP LOCKED;

UPDATE JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = picked.id
SET e.status = 'PENDING', e.claim_token = NULL, e.processing_until = NULL
WHERE e.status = 'PROCESSING';
