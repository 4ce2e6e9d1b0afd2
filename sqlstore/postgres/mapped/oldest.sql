-- $1 number of shards. Returns, for each shard in which something is due or has failed, the oldest such event among the
-- first 2,000 in outbox order, the first 1,000 that failed, and those that are being sent.
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

WITH first AS (
  SELECT e.*
  FROM (VALUES {pending_words}) AS w(word)
  CROSS JOIN LATERAL (SELECT e.ref FROM {rows} e WHERE {pending_walk} ORDER BY {walk_order} LIMIT 2000) e
  UNION
  (SELECT f.event FROM {failures} f WHERE f.state = 'PENDING' LIMIT 1000)
  UNION
  (SELECT e.ref FROM {rows} e WHERE {state_busy} LIMIT 10000)
)
SELECT DISTINCT ON (e.shard) e.shard, CASE WHEN isfinite(e.created_at) THEN extract(epoch FROM now() - e.created_at) ELSE 0 END::float8, e.event_key,
       e.event_id, coalesce(e.last_error, '')
FROM {events} e
WHERE e.id IN (SELECT ref::{id_type} FROM first) AND e.status IN ('PENDING', 'PROCESSING') AND e.shard < $1::int
  AND (e.failed OR e.status = 'PROCESSING' OR e.next_attempt_at IS NULL OR e.next_attempt_at <= now())
ORDER BY e.shard, e.created_at, coalesce(e.last_error, '') = '';
