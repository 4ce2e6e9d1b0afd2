-- $1 number of shards. Returns rows that no relay will ever send: what they are, how many, the id of one, and what to
-- do. It looks at the first and the last thousand rows.
WITH looked AS (
  (SELECT e.* FROM {rows} e ORDER BY e.id LIMIT 1000)
  UNION ALL
  (SELECT e.* FROM {rows} e ORDER BY e.id DESC LIMIT 1000)
), odd AS (
  SELECT DISTINCT ref, CASE
    WHEN their_state = '' THEN 'marked ' || coalesce(quote_literal(word::text), 'NULL') || ', which is none of the words of the mapping'
    WHEN their_state = 'PROCESSING' AND NOT {can_claim} THEN 'PROCESSING, which only row claims use'
    WHEN their_state = 'PROCESSING' AND processing_until IS NULL THEN 'PROCESSING without a time at which the claim runs out, so that no relay takes them'
    WHEN their_state = 'PROCESSING' AND processing_until < now() - interval '1 hour' AND coalesce(claim_token, '') = '' THEN 'PROCESSING without a claim token although their time ran out more than an hour ago, so that no relay with claim: row takes them over'
    WHEN their_state = 'PROCESSING' AND processing_until < now() - interval '1 hour' THEN 'PROCESSING although their claims ran out more than an hour ago, because no relay is at work'
    WHEN their_state = 'PENDING' AND event_key = '' THEN 'PENDING without a key, so that they will become DEAD'
    WHEN created_at > now() + interval '5 minutes' THEN CASE
      WHEN {no_zone} THEN 'created in the future, so that the time zone may be another one' ELSE 'created in the future by the clock of the database' END
    WHEN their_state = 'PENDING' AND their_next_attempt_at > now() + interval '366 days' THEN 'PENDING but not due for more than a year'
  END AS what
  FROM looked
  WHERE $1::int > 0
)
SELECT what, count(*), min(ref), CASE
    WHEN what LIKE 'marked %' THEN 'correct them by SQL, or leave them: nothing touches them'
    WHEN what LIKE '% claim: row %' THEN 'start a relay with claim: shard, or correct them by SQL'
    WHEN what LIKE 'PROCESSING although %' THEN 'start a relay, which takes them over'
    WHEN what LIKE '% time zone %' THEN 'set outbox.time_zone to the zone of the times that the application writes'
    ELSE 'correct them by SQL'
  END
FROM odd WHERE what IS NOT NULL GROUP BY what ORDER BY what;
