-- $1 number of shards. Returns rows that no relay will ever send: what they are, how many, and the id of one. It looks at
-- the first and the last thousand rows.
WITH looked AS (
  (SELECT e.* FROM {rows} e ORDER BY e.id LIMIT 1000)
  UNION ALL
  (SELECT e.* FROM {rows} e ORDER BY e.id DESC LIMIT 1000)
), odd AS (
  SELECT DISTINCT ref, CASE
    WHEN their_state = '' THEN 'marked ' || coalesce(quote_literal(word::text), 'NULL') || ', which is none of the words of the mapping'
    WHEN their_state = 'PROCESSING' AND NOT {can_claim} THEN 'PROCESSING, which only row claims use'
    WHEN their_state = 'PROCESSING' AND (claim_token IS NULL OR processing_until IS NULL) THEN 'PROCESSING without a claim token and a time at which the claim runs out, so that no relay takes them'
    WHEN their_state = 'PROCESSING' AND processing_until < now() - interval '1 hour' THEN 'PROCESSING although their claims ran out more than an hour ago, because no relay is at work'
    WHEN their_state = 'PENDING' AND event_key = '' THEN 'PENDING without a key, so that they will become DEAD'
    WHEN created_at > now() + interval '5 minutes' THEN 'created in the future, so that the time zone may be another one'
    WHEN their_state = 'PENDING' AND their_next_attempt_at > now() + interval '366 days' THEN 'PENDING but not due for more than a year'
  END AS what
  FROM looked
  WHERE $1::int > 0
)
SELECT what, count(*), min(ref) FROM odd WHERE what IS NOT NULL GROUP BY what ORDER BY what;
