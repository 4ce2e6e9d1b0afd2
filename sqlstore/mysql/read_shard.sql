-- A part of read.sql: the events of the shard {shard}, which is the {place}th to be served, but for those in {flight}.
-- The two halves are disjoint, and each follows one index from its lowest entry.
SELECT {place} AS place, id FROM (
  (
    SELECT r.id
    FROM {events} r FORCE INDEX ({index_ready})
    WHERE r.ready_shard = {shard} AND r.next_attempt_at <= utc_timestamp(6) AND r.id NOT IN ({flight})
      AND NOT EXISTS (SELECT 1 FROM skip WHERE skip.aggregate_type = r.aggregate_type AND skip.event_type = r.event_type)
      AND NOT EXISTS (SELECT 1 FROM skip_key WHERE skip_key.aggregate_id = r.aggregate_id)
      AND NOT EXISTS (SELECT 1 FROM {holds} h WHERE h.event_key = r.aggregate_id)
      AND NOT EXISTS (
        SELECT 1
        FROM {events} b FORCE INDEX ({index_blocking})
        WHERE b.blocking_key = r.aggregate_id AND b.id < r.id
          AND (b.aggregate_type = r.aggregate_type AND b.aggregate_version > r.aggregate_version) IS NOT TRUE
      )
    ORDER BY r.ready_shard, r.id
    LIMIT :6
  )
  UNION ALL
  (
    SELECT w.id
    FROM {events} w FORCE INDEX ({index_waiting})
    WHERE w.waiting_shard = {shard} AND w.next_attempt_at <= utc_timestamp(6) AND w.id NOT IN ({flight})
      AND NOT EXISTS (SELECT 1 FROM skip WHERE skip.aggregate_type = w.aggregate_type AND skip.event_type = w.event_type)
      AND NOT EXISTS (SELECT 1 FROM skip_key WHERE skip_key.aggregate_id = w.aggregate_id)
      AND NOT EXISTS (SELECT 1 FROM {holds} h WHERE h.event_key = w.aggregate_id)
      AND NOT EXISTS (
        SELECT 1
        FROM {events} b FORCE INDEX ({index_blocking})
        WHERE b.blocking_key = w.aggregate_id AND b.id < w.id
          AND (b.aggregate_type = w.aggregate_type AND b.aggregate_version > w.aggregate_version) IS NOT TRUE
      )
    ORDER BY w.waiting_shard, w.next_attempt_at, w.id
    LIMIT :6
  )
  ORDER BY id
  LIMIT :6
) AS shard_{place};
