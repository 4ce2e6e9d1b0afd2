-- Gives back events whose claims ran out, some at a time.
UPDATE {events}
SET status = 'PENDING', claim_token = NULL, processing_until = NULL
WHERE status = 'PROCESSING' AND id IN (
  SELECT id FROM {events} WHERE status = 'PROCESSING' AND processing_until <= strftime('%Y-%m-%d %H:%M:%f', 'now')
  ORDER BY processing_until, id
  LIMIT 1000
);
