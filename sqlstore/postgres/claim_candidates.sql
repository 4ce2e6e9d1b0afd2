-- For this transaction only; see read.sql. A claimer that is halted before it commits must not keep events locked.
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('idle_in_transaction_session_timeout', '10s', true);

-- $1 shards, $2 kinds to skip, $3 keys to skip, all as JSON; $4 limit, $5 limit of the events that are to be claimed
-- alone. Locks events that can be claimed, and passes over those that another claimer has locked. Returns them as
-- read.sql does, each with the token of the claim that ran out.
WITH skip AS (
  SELECT * FROM json_to_recordset($2::text::json) AS skip(aggregate_type text, event_type text)
), skip_key AS (
  SELECT value AS aggregate_id FROM json_array_elements_text($3::text::json)
)
SELECT e.id, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, e.headers, e.retry_count, CASE WHEN isfinite(e.created_at) THEN extract(epoch FROM now() - e.created_at) ELSE 0 END::float8, NULL::bigint,
       CASE WHEN e.status = 'PROCESSING' THEN coalesce(e.claim_token::text, '') ELSE '' END
FROM (
  -- Each part follows one index from its lowest entry, and is only begun when those before it have not filled the limit.
  SELECT * FROM (
    SELECT *
    FROM {events} e
    WHERE e.status = 'PROCESSING' AND e.processing_until <= now() AND right(e.claim_token::text, 2) = '00'
      AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
      AND e.aggregate_id NOT IN (SELECT aggregate_id FROM skip_key)
    ORDER BY e.processing_until, e.id
    LIMIT $4
    FOR UPDATE SKIP LOCKED
  ) locked
  UNION ALL
  SELECT * FROM (
    SELECT *
    FROM {events} e
    WHERE e.status = 'PROCESSING' AND e.processing_until <= now() AND right(e.claim_token::text, 2) <> '00'
      AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
      AND e.aggregate_id NOT IN (SELECT aggregate_id FROM skip_key)
    ORDER BY e.processing_until, e.id
    LIMIT $5
    FOR UPDATE SKIP LOCKED
  ) locked
  UNION ALL
  SELECT pending.*
  FROM unnest(translate($1::text, '[]', '{}')::smallint[]) AS s(shard)
  CROSS JOIN LATERAL (
    SELECT * FROM (
      SELECT *
      FROM {events} e
      WHERE e.shard = s.shard AND e.status = 'PENDING' AND e.next_attempt_at <= e.created_at AND e.next_attempt_at <= now()
        AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
        AND e.aggregate_id NOT IN (SELECT aggregate_id FROM skip_key)
      ORDER BY e.id
      LIMIT $4
      FOR UPDATE SKIP LOCKED
    ) locked
    UNION ALL
    SELECT * FROM (
      SELECT *
      FROM {events} e
      WHERE e.shard = s.shard AND e.status = 'PENDING' AND e.next_attempt_at > e.created_at AND e.next_attempt_at <= now()
        AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
        AND e.aggregate_id NOT IN (SELECT aggregate_id FROM skip_key)
      ORDER BY e.next_attempt_at, e.id
      LIMIT $4
      FOR UPDATE SKIP LOCKED
    ) locked
  ) pending
) e
LIMIT $4;
