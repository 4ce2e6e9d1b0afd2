-- :1 shards, :2 their floors, :3 ids in flight (the three stand in the statement itself), :4 kinds to skip, :5 keys to skip,
-- as JSON; :6 limit per shard, :7 limit. {parts} is read_shard.sql for each shard.
WITH skip AS (
  SELECT aggregate_type, event_type
  FROM JSON_TABLE(:4, '$[*]' COLUMNS (aggregate_type varchar(255) CHARACTER SET utf8mb4 PATH '$.aggregate_type', event_type varchar(255) CHARACTER SET utf8mb4 PATH '$.event_type')) list
), skip_key AS (
  SELECT aggregate_id FROM JSON_TABLE(:5, '$[*]' COLUMNS (aggregate_id varchar(255) CHARACTER SET utf8mb4 PATH '$')) list
)
SELECT e.id, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, e.headers, e.retry_count,
       timestampdiff(MICROSECOND, e.created_at, utc_timestamp(6)) / 1000000,
       CASE
         WHEN coalesce(e.aggregate_version, 1) <= 1 THEN NULL
         WHEN e.aggregate_version - 1 <= left_version.version THEN NULL
         -- It waits earlier in the outbox, or nothing of the aggregate has left and nothing lower waits.
         WHEN EXISTS (
           SELECT 1 FROM {events} p FORCE INDEX ({index_gaps})
           WHERE p.versioned_key = e.aggregate_id AND p.aggregate_version = e.aggregate_version - 1
             AND p.aggregate_type = e.aggregate_type AND p.id < e.id
         ) THEN NULL
         WHEN left_version.version IS NULL AND NOT EXISTS (
           SELECT 1 FROM {events} p FORCE INDEX ({index_gaps})
           WHERE p.versioned_key = e.aggregate_id AND p.aggregate_version < e.aggregate_version
             AND p.aggregate_type = e.aggregate_type
         ) THEN NULL
         ELSE e.aggregate_version - 1
       END
FROM (
  SELECT place, id FROM (
    {parts}
  ) found
  ORDER BY place, id
  LIMIT :7
) found
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = found.id
LEFT JOIN {versions} left_version
  ON e.aggregate_version IS NOT NULL AND left_version.aggregate_type = e.aggregate_type AND left_version.aggregate_id = e.aggregate_id
ORDER BY found.place, found.id;
