-- For this transaction only. Compiling the statement takes longer than running it, and statistics that are out of date
-- must not talk the planner out of walking an index in its order.
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- $1 shards, $2 nothing, $3 ids in flight, $4 kinds to skip, $5 keys to skip, all as JSON; $6 is applied by the caller,
-- $7 limit. Returns the events of all these shards in outbox order, their headers and keys last.
WITH failed AS (
  -- While nothing has failed, no row needs to be looked up in the side table.
  SELECT EXISTS (SELECT FROM {failures}) AS any
), owned AS (
  SELECT unnest(translate($1::text, '[]', '{}')::smallint[]) AS shard
), flight AS (
  SELECT value::{id_type} AS id FROM json_array_elements_text($3::text::json)
), skip AS (
  SELECT * FROM json_to_recordset($4::text::json) AS skip(aggregate_type text, event_type text)
), skip_key AS (
  SELECT value AS event_key FROM json_array_elements_text($5::text::json)
), held_key AS (
  -- As an array it is hashed once, whatever the statistics say.
  SELECT unnest(ARRAY(SELECT event_key FROM {holds})) AS event_key
), batch AS MATERIALIZED (
  SELECT e.*
  FROM (VALUES {pending_words}) AS w(word)
  CROSS JOIN LATERAL (
    -- The order by word and ord is that of the index, and of no other: were the word taken for a constant, the planner
    -- might as well walk over all rows by their ids. OFFSET 0 keeps each check an index probe for each row.
    SELECT e.*
    FROM {rows} e
    WHERE {pending_walk}
      AND e.shard IN (SELECT shard FROM owned)
      AND e.id NOT IN (SELECT id FROM flight)
      AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
      AND e.event_key NOT IN (SELECT event_key FROM skip_key)
      AND e.event_key NOT IN (SELECT event_key FROM held_key)
      AND CASE
        WHEN (SELECT failed.any FROM failed) THEN coalesce((
          SELECT CASE f.state WHEN 'PENDING' THEN f.next_attempt_at ELSE 'infinity' END
          FROM {failures} f
          WHERE f.event = e.ref AND f.event_key = e.event_key AND f.their_state = 'PENDING'
          OFFSET 0
        ), e.their_next_attempt_at, '-infinity') <= now()
        ELSE coalesce(e.their_next_attempt_at, '-infinity') <= now()
      END
      AND (NOT (SELECT failed.any FROM failed) OR NOT EXISTS (
        SELECT
        FROM {failures} f
        JOIN {rows} b ON b.id = f.event::{id_type} AND b.event_key = f.event_key AND b.their_state = 'PENDING'
        WHERE f.event_key = e.event_key AND f.state = 'PENDING' AND f.their_state = 'PENDING'
          AND (b.ord, b.id) < (e.ord, e.id)
          AND (b.aggregate_type = e.aggregate_type AND b.aggregate_version > e.aggregate_version) IS NOT TRUE
        OFFSET 0
      ))
    ORDER BY {walk_order}
    LIMIT $7::int
  ) e
  ORDER BY e.ord, e.id
  LIMIT $7::int
), waiting AS MATERIALIZED (
  SELECT p.aggregate_type, p.aggregate_id, p.aggregate_version, p.ord, p.id
  FROM {rows} p
  WHERE {pending_p} AND p.aggregate_version IS NOT NULL
    AND (p.aggregate_type, p.aggregate_id) IN (
      SELECT aggregate_type, aggregate_id FROM batch WHERE aggregate_version IS NOT NULL
    )
    AND NOT EXISTS (
      SELECT FROM {failures} f WHERE f.event = p.ref AND f.event_key = p.event_key AND f.their_state = 'PENDING' AND f.state <> 'PENDING'
    )
)
SELECT e.ref, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, NULL,
       coalesce(f.retry_count, 0), CASE WHEN isfinite(e.created_at) THEN extract(epoch FROM now() - e.created_at) ELSE 0 END::float8,
       CASE
         WHEN coalesce(e.aggregate_version, 1) <= 1 THEN NULL
         WHEN e.aggregate_version - 1 <= v.version THEN NULL
         -- It waits earlier in the outbox, or nothing of the aggregate has left and nothing lower waits.
         WHEN EXISTS (
           SELECT FROM waiting p
           WHERE p.aggregate_id = e.aggregate_id AND p.aggregate_version = e.aggregate_version - 1
             AND p.aggregate_type = e.aggregate_type AND (p.ord, p.id) < (e.ord, e.id)
         ) THEN NULL
         WHEN v.version IS NULL AND NOT EXISTS (
           SELECT FROM waiting p
           WHERE p.aggregate_id = e.aggregate_id AND p.aggregate_version < e.aggregate_version
             AND p.aggregate_type = e.aggregate_type
         ) THEN NULL
         ELSE e.aggregate_version - 1
       END,
       e.headers, e.event_key
FROM batch e
LEFT JOIN {failures} f ON f.event = e.ref AND f.event_key = e.event_key AND f.their_state = 'PENDING'
LEFT JOIN {versions} v
  ON e.aggregate_version IS NOT NULL AND v.aggregate_type = e.aggregate_type AND v.aggregate_id = e.aggregate_id
WHERE $2::text IS NOT NULL AND $6::int IS NOT NULL
ORDER BY e.ord, e.id;
