-- ?1 candidates as JSON: id, retry_count, seen (the token of the claim that ran out, if any), token; ?2 lease in seconds,
-- ?3 member id, ?4 what is kept about a claim that ran out. Takes those that still are as they were seen, and returns
-- their ids.
INSERT INTO {attempts} (event, outcome, error, actor)
SELECT e.id, 'retry', ?4, ?3
FROM json_each(?1) candidate
JOIN {events} e ON e.id = candidate.value ->> 'id' AND e.retry_count = candidate.value ->> 'retry_count'
WHERE e.status = 'PROCESSING' AND e.claim_token = candidate.value ->> 'seen'
  AND e.processing_until <= strftime('%Y-%m-%d %H:%M:%f', 'now');

UPDATE {events} AS e
SET status = 'PROCESSING', claim_token = candidate.value ->> 'token',
    processing_until = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', ?2))
FROM json_each(?1) candidate
WHERE e.id = candidate.value ->> 'id' AND e.retry_count = candidate.value ->> 'retry_count'
  AND (
    candidate.value ->> 'seen' IS NULL AND e.status = 'PENDING' AND e.next_attempt_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')
    OR e.status = 'PROCESSING' AND e.claim_token = candidate.value ->> 'seen'
      AND e.processing_until <= strftime('%Y-%m-%d %H:%M:%f', 'now')
  )
RETURNING id;
