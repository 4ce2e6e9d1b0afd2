-- For this transaction only. Compiling the statement takes longer than running it, and statistics that are out of date
-- must not talk the planner out of walking the indexes in their order.
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- $1 shards, $2 their floors, $3 ids in flight, $4 kinds to skip, $5 keys to skip, all as JSON; $6 limit per shard,
-- $7 limit.
WITH failed AS (
  -- While nothing has failed, no row needs to be checked for an earlier failed event of its key.
  SELECT EXISTS (SELECT FROM {events} WHERE status = 'PENDING' AND last_error IS NOT NULL) AS any
), flight AS (
  SELECT unnest(translate($3::text, '[]', '{}')::bigint[]) AS id
), skip AS (
  SELECT * FROM json_to_recordset($4::text::json) AS skip(aggregate_type text, event_type text)
), skip_key AS (
  SELECT value AS aggregate_id FROM json_array_elements_text($5::text::json)
), held_key AS (
  -- A held key is held absolutely, whatever the ids. As an array it is hashed once, whatever the statistics say.
  SELECT unnest(ARRAY(SELECT event_key FROM {holds} WHERE NOT redriven)) AS aggregate_id
), redriven AS (
  -- A floor (see floors.go) may lie above an event that was redriven since, until a look finds the event. Later events of its key
  -- must not pass it meanwhile, so for some minutes, in which there are many looks, nothing starts above the mark that redrive left by
  -- the statement which let the key go: every snapshot with the later events has the mark. Redriven events stand in the half that
  -- follows the ids. If a later event of the key comes from there, it comes behind them. If it comes from the other half, it is
  -- among the lowest ids of both: then so are they, or the limit is full before it.
  SELECT min(event) AS id FROM {holds} WHERE redriven AND held_at > now() - interval '5 minutes'
)
SELECT e.id, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, e.headers, e.retry_count, e.age,
       CASE
         WHEN coalesce(e.aggregate_version, 1) <= 1 THEN NULL
         WHEN e.aggregate_version - 1 <= left_version.version THEN NULL
         -- It waits earlier in the outbox, or nothing of the aggregate has left and nothing lower waits.
         WHEN EXISTS (
           SELECT FROM {events} p
           WHERE p.aggregate_id = e.aggregate_id AND p.aggregate_version = e.aggregate_version - 1 AND p.status = 'PENDING'
             AND p.aggregate_type = e.aggregate_type AND p.id < e.id
         ) THEN NULL
         WHEN left_version.version IS NULL AND NOT EXISTS (
           SELECT FROM {events} p
           WHERE p.aggregate_id = e.aggregate_id AND p.aggregate_version < e.aggregate_version AND p.status = 'PENDING'
             AND p.aggregate_type = e.aggregate_type
         ) THEN NULL
         ELSE e.aggregate_version - 1
       END
FROM unnest(translate($1::text, '[]', '{}')::smallint[], translate($2::text, '[]', '{}')::bigint[]) AS owned(shard, floor)
CROSS JOIN LATERAL (
  -- The two halves are disjoint, and each follows one index from its lowest entry. OFFSET 0 keeps the check for a
  -- failed event of the same key an index probe for each row; as a join it could be planned with a sort.
  (
    SELECT e.*, CASE WHEN isfinite(e.created_at) THEN extract(epoch FROM now() - e.created_at) ELSE 0 END::float8 AS age
    FROM {events} e
    WHERE e.shard = owned.shard AND e.id >= least(owned.floor, (SELECT id FROM redriven)) AND e.status = 'PENDING'
      AND e.next_attempt_at <= e.created_at AND e.next_attempt_at <= now()
      AND e.id NOT IN (SELECT id FROM flight)
      AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
      AND e.aggregate_id NOT IN (SELECT aggregate_id FROM skip_key)
      AND e.aggregate_id NOT IN (SELECT aggregate_id FROM held_key)
      AND (NOT (SELECT failed.any FROM failed) OR NOT EXISTS (
        SELECT FROM {events} b
        WHERE b.aggregate_id = e.aggregate_id AND b.id < e.id AND b.status = 'PENDING' AND b.last_error IS NOT NULL
          AND (b.aggregate_type = e.aggregate_type AND b.aggregate_version > e.aggregate_version) IS NOT TRUE
        OFFSET 0
      ))
    ORDER BY e.id
    LIMIT $6
  )
  UNION ALL
  (
    SELECT e.*, CASE WHEN isfinite(e.created_at) THEN extract(epoch FROM now() - e.created_at) ELSE 0 END::float8 AS age
    FROM {events} e
    WHERE e.shard = owned.shard AND e.status = 'PENDING' AND e.next_attempt_at > e.created_at
      AND e.next_attempt_at <= now()
      AND e.id NOT IN (SELECT id FROM flight)
      AND (e.aggregate_type, e.event_type) NOT IN (SELECT aggregate_type, event_type FROM skip)
      AND e.aggregate_id NOT IN (SELECT aggregate_id FROM skip_key)
      AND e.aggregate_id NOT IN (SELECT aggregate_id FROM held_key)
      AND (NOT (SELECT failed.any FROM failed) OR NOT EXISTS (
        SELECT FROM {events} b
        WHERE b.aggregate_id = e.aggregate_id AND b.id < e.id AND b.status = 'PENDING' AND b.last_error IS NOT NULL
          AND (b.aggregate_type = e.aggregate_type AND b.aggregate_version > e.aggregate_version) IS NOT TRUE
        OFFSET 0
      ))
    ORDER BY e.next_attempt_at, e.id
    LIMIT $6
  )
  ORDER BY id
  LIMIT $6
) e
LEFT JOIN LATERAL (
  SELECT v.version
  FROM {versions} v
  WHERE e.aggregate_version IS NOT NULL AND v.aggregate_type = e.aggregate_type AND v.aggregate_id = e.aggregate_id
  OFFSET 0
) left_version ON true
LIMIT $7;
