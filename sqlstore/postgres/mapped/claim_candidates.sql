-- For this transaction only; see read.sql. A claimer that is halted before it commits must not keep events locked.
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('idle_in_transaction_session_timeout', '10s', true);

-- $1 shards, $2 kinds to skip, $3 keys to skip, all as JSON; $4 limit, $5 limit of the events that are to be claimed
-- alone. Locks events that can be claimed, and passes over those that another claimer has locked. Returns them as
-- read.sql does, each with the token of the claim that ran out. Who else claims has other tokens, and their ends count nothing.
WITH skip AS (
  SELECT * FROM json_to_recordset($2::text::json) AS skip(aggregate_type text, event_type text)
), skip_key AS (
  SELECT value AS event_key FROM json_array_elements_text($3::text::json)
)
SELECT e.ref, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, NULL, coalesce(f.retry_count, 0), CASE WHEN isfinite(e.created_at) THEN extract(epoch FROM now() - e.created_at) ELSE 0 END::float8,
       NULL::bigint, e.headers, e.event_key, CASE WHEN e.their_state = 'PROCESSING' THEN e.claim_token ELSE '' END
FROM (
  -- A part is only begun when those before it have not filled the limit.
  SELECT * FROM (
    SELECT e.*
    FROM {rows} e
    WHERE {state_claimed} AND e.processing_until <= now() AND e.claim_token <> '' AND NOT coalesce(substr(e.claim_token, 15, 1) = '8' AND right(e.claim_token, 2) <> '00', false)
      AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
      AND e.event_key NOT IN (SELECT event_key FROM skip_key)
    LIMIT $4
    FOR UPDATE SKIP LOCKED
  ) locked
  UNION ALL
  SELECT * FROM (
    SELECT e.*
    FROM {rows} e
    WHERE {state_claimed} AND e.processing_until <= now() AND coalesce(substr(e.claim_token, 15, 1) = '8' AND right(e.claim_token, 2) <> '00', false)
      AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
      AND e.event_key NOT IN (SELECT event_key FROM skip_key)
    LIMIT $5
    FOR UPDATE SKIP LOCKED
  ) locked
  UNION ALL
  SELECT pending.*
  FROM (VALUES {pending_words}) AS w(word)
  CROSS JOIN LATERAL (
    SELECT e.*
    FROM {rows} e
    WHERE {pending_walk}
      AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
      AND e.event_key NOT IN (SELECT event_key FROM skip_key)
      AND coalesce((
        SELECT CASE f.state WHEN 'PENDING' THEN f.next_attempt_at ELSE 'infinity' END
        FROM {failures} f
        WHERE f.event = e.ref AND f.event_key = e.event_key AND f.their_state = 'PENDING'
        OFFSET 0
      ), e.their_next_attempt_at, '-infinity') <= now()
    ORDER BY {walk_order}
    LIMIT $4
    FOR UPDATE SKIP LOCKED
  ) pending
) e
LEFT JOIN {failures} f ON f.event = e.ref AND f.event_key = e.event_key AND f.their_state = 'PENDING'
WHERE $1::text IS NOT NULL
LIMIT $4;
