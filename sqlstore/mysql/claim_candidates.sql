-- :1 shards, :2 kinds to skip, :3 keys to skip, all as JSON; :4 limit, :5 limit of the events that are to be claimed
-- alone. Returns events that can be claimed as read.sql does, each with the token of the claim that ran out.
-- They are looked up first, more than are wanted ({look}), and then locked by their primary key: a search that locks would
-- also lock what lies behind its end, which is another relay's claim. What another claimer has locked is passed over; one
-- that is halted before it commits keeps its locks until the server ends its session, by wait_timeout.
WITH skip AS (
  SELECT aggregate_type, event_type
  FROM JSON_TABLE(:2, '$[*]' COLUMNS (aggregate_type varchar(255) CHARACTER SET utf8mb4 PATH '$.aggregate_type', event_type varchar(255) CHARACTER SET utf8mb4 PATH '$.event_type')) list
), skip_key AS (
  SELECT aggregate_id FROM JSON_TABLE(:3, '$[*]' COLUMNS (aggregate_id varchar(255) CHARACTER SET utf8mb4 PATH '$')) list
)
SELECT e.id, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, e.headers, e.retry_count,
       timestampdiff(MICROSECOND, e.created_at, utc_timestamp(6)) / 1000000, NULL, CASE WHEN e.status = 'PROCESSING' THEN coalesce(e.claim_token, '') ELSE '' END
FROM (
  -- Each part follows one index from its lowest entry: those from the first shard on, then those before it.
  (
    SELECT 0 AS turn, p.id, p.claim_token
    FROM {events} p FORCE INDEX ({index_processing})
    WHERE p.processing_due <= utc_timestamp(6) AND p.processing_until <= utc_timestamp(6) AND right(p.claim_token, 2) = '00'
      AND NOT EXISTS (SELECT 1 FROM skip WHERE skip.aggregate_type = p.aggregate_type AND skip.event_type = p.event_type)
      AND NOT EXISTS (SELECT 1 FROM skip_key WHERE skip_key.aggregate_id = p.aggregate_id)
    ORDER BY p.processing_due, p.id
    LIMIT {look}
  )
  UNION ALL
  (
    SELECT 0, p.id, p.claim_token
    FROM {events} p FORCE INDEX ({index_processing})
    WHERE p.processing_due <= utc_timestamp(6) AND p.processing_until <= utc_timestamp(6) AND right(p.claim_token, 2) <> '00'
      AND NOT EXISTS (SELECT 1 FROM skip WHERE skip.aggregate_type = p.aggregate_type AND skip.event_type = p.event_type)
      AND NOT EXISTS (SELECT 1 FROM skip_key WHERE skip_key.aggregate_id = p.aggregate_id)
    ORDER BY p.processing_due, p.id
    LIMIT :5
  )
  UNION ALL
  (
    SELECT 2, r.id, NULL
    FROM {events} r FORCE INDEX ({index_ready})
    WHERE r.ready_shard >= CAST(json_extract(:1, '$[0]') AS SIGNED) AND r.next_attempt_at <= utc_timestamp(6)
      AND NOT EXISTS (SELECT 1 FROM skip WHERE skip.aggregate_type = r.aggregate_type AND skip.event_type = r.event_type)
      AND NOT EXISTS (SELECT 1 FROM skip_key WHERE skip_key.aggregate_id = r.aggregate_id)
    ORDER BY r.ready_shard, r.id
    LIMIT {look}
  )
  UNION ALL
  (
    SELECT 3, r.id, NULL
    FROM {events} r FORCE INDEX ({index_ready})
    WHERE r.ready_shard < CAST(json_extract(:1, '$[0]') AS SIGNED) AND r.next_attempt_at <= utc_timestamp(6)
      AND NOT EXISTS (SELECT 1 FROM skip WHERE skip.aggregate_type = r.aggregate_type AND skip.event_type = r.event_type)
      AND NOT EXISTS (SELECT 1 FROM skip_key WHERE skip_key.aggregate_id = r.aggregate_id)
    ORDER BY r.ready_shard, r.id
    LIMIT {look}
  )
  UNION ALL
  (
    SELECT {waiting_turn}, w.id, NULL
    FROM {events} w FORCE INDEX ({index_waiting})
    WHERE w.waiting_shard IN ({heads}) AND w.waiting_shard >= CAST(json_extract(:1, '$[0]') AS SIGNED)
      AND w.next_attempt_at <= utc_timestamp(6)
      AND NOT EXISTS (SELECT 1 FROM skip WHERE skip.aggregate_type = w.aggregate_type AND skip.event_type = w.event_type)
      AND NOT EXISTS (SELECT 1 FROM skip_key WHERE skip_key.aggregate_id = w.aggregate_id)
    ORDER BY w.waiting_shard, w.next_attempt_at, w.id
    LIMIT {look}
  )
  UNION ALL
  (
    SELECT {waiting_turn}, w.id, NULL
    FROM {events} w FORCE INDEX ({index_waiting})
    WHERE w.waiting_shard IN ({heads}) AND w.waiting_shard < CAST(json_extract(:1, '$[0]') AS SIGNED)
      AND w.next_attempt_at <= utc_timestamp(6)
      AND NOT EXISTS (SELECT 1 FROM skip WHERE skip.aggregate_type = w.aggregate_type AND skip.event_type = w.event_type)
      AND NOT EXISTS (SELECT 1 FROM skip_key WHERE skip_key.aggregate_id = w.aggregate_id)
    ORDER BY w.waiting_shard, w.next_attempt_at, w.id
    LIMIT {look}
  )
  ORDER BY turn, id
  LIMIT {look}
) found
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = found.id
WHERE e.claim_token <=> found.claim_token
  AND (e.status = 'PENDING' AND e.next_attempt_at <= utc_timestamp(6) OR e.status = 'PROCESSING' AND e.processing_until <= utc_timestamp(6))
LIMIT :4
FOR UPDATE /*!80019 OF e */ SKIP LOCKED;
