-- Gives back events whose claims ran out, some at a time.
UPDATE {events} e
SET status = 'PENDING', claim_token = NULL, processing_until = NULL
WHERE e.id = ANY (ARRAY(
  SELECT id FROM {events} WHERE status = 'PROCESSING' AND processing_until <= now()
  ORDER BY processing_until, id
  LIMIT 1000
  FOR UPDATE SKIP LOCKED
)) AND e.status = 'PROCESSING';
