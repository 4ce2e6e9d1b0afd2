-- :1 relay name, :2 member id, :3 settlements as JSON, in the order of the shards. Returns the ids that were written.
-- Locks as in settle_published.sql.
SELECT l.shard, l.epoch
FROM JSON_TABLE(:3, '$[*]' COLUMNS (shard smallint PATH '$.shard', epoch bigint PATH '$.epoch')) settled
STRAIGHT_JOIN {shards} l FORCE INDEX (PRIMARY) ON l.relay_name = :1 AND l.shard = settled.shard
WHERE l.owner = :2 AND l.epoch = settled.epoch
/*!80019 FOR SHARE OF l */ /*M!100600 LOCK IN SHARE MODE */;

SELECT e.id
FROM JSON_TABLE(:3, '$[*]' COLUMNS (id bigint PATH '$.id', shard smallint PATH '$.shard', epoch bigint PATH '$.epoch')) settled
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = settled.id AND e.shard = settled.shard
WHERE (settled.shard, settled.epoch) IN ({proven}) AND e.status = 'PENDING'
FOR UPDATE /*!80019 OF e */ NOWAIT;

UPDATE JSON_TABLE(:3, '$[*]' COLUMNS (
  id bigint PATH '$.id', state varchar(10) CHARACTER SET utf8mb4 PATH '$.state', retry_count int PATH '$.retry_count',
  retry_after double PATH '$.retry_after', error text CHARACTER SET utf8mb4 PATH '$.error'
)) settled
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = settled.id
SET e.status = settled.state, e.retry_count = settled.retry_count, e.last_error = settled.error,
    e.next_attempt_at = utc_timestamp(6) + INTERVAL round(settled.retry_after * 1000000) MICROSECOND
WHERE settled.id IN ({picked});

INSERT INTO {versions} (aggregate_type, aggregate_id, version)
SELECT gone.aggregate_type, gone.aggregate_id, gone.version
FROM (
  SELECT aggregate_type, aggregate_id, max(aggregate_version) AS version
  FROM {events} FORCE INDEX (PRIMARY)
  WHERE id IN ({picked}) AND aggregate_version IS NOT NULL AND status = 'DEAD'
  GROUP BY aggregate_type, aggregate_id
) gone
ORDER BY gone.aggregate_type, gone.aggregate_id
ON DUPLICATE KEY UPDATE {versions}.version = greatest({versions}.version, gone.version), left_at = utc_timestamp(6);

INSERT INTO {holds} (event, event_key)
SELECT held.id, held.aggregate_id
FROM (
  SELECT e.id, e.aggregate_id
  FROM JSON_TABLE(:3, '$[*]' COLUMNS (id bigint PATH '$.id', holds boolean PATH '$.holds')) settled
  STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = settled.id
  WHERE settled.id IN ({picked}) AND settled.holds IS TRUE
) held
ON DUPLICATE KEY UPDATE event_key = held.aggregate_id, held_at = utc_timestamp(6);

INSERT INTO {attempts} (event, outcome, error, actor, sink)
SELECT id, CASE state WHEN 'DEAD' THEN 'dead' ELSE 'retry' END, error, :2, sink
FROM JSON_TABLE(:3, '$[*]' COLUMNS (id bigint PATH '$.id', state varchar(10) CHARACTER SET utf8mb4 PATH '$.state', error text CHARACTER SET utf8mb4 PATH '$.error',
  sink text CHARACTER SET utf8mb4 PATH '$.sink', held boolean PATH '$.held')) settled
WHERE id IN ({picked}) AND held IS NOT TRUE;

SELECT id FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked WHERE id IS NOT NULL;
