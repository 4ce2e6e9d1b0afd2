-- $1 candidates as JSON: id, retry_count, seen (the token of the claim that ran out, if any), token; $2 lease in seconds,
-- $3 member id, $4 what is kept about a claim that ran out. Takes those that still are as they were seen, and returns
-- their ids.
WITH candidate AS (
  SELECT * FROM json_to_recordset($1::text::json) AS candidate(id bigint, retry_count int, seen uuid, token uuid)
), taken AS (
  UPDATE {events} e
  SET status = 'PROCESSING', claim_token = candidate.token, processing_until = now() + $2::float8 * interval '1 second'
  FROM candidate
  WHERE e.id = candidate.id AND e.retry_count = candidate.retry_count
    AND (
      candidate.seen IS NULL AND e.status = 'PENDING' AND e.next_attempt_at <= now()
      OR e.status = 'PROCESSING' AND e.claim_token = candidate.seen AND e.processing_until <= now()
    )
  RETURNING e.id, candidate.seen
), kept AS (
  INSERT INTO {attempts} (event, outcome, error, actor)
  SELECT id, 'retry', $4, $3 FROM taken WHERE seen IS NOT NULL
)
SELECT id FROM taken;
