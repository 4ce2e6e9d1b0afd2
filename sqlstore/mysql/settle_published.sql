-- :1 relay name, :2 member id, :3 settlements as JSON, in the order of the shards. Returns the ids that were written.
-- The lock lasts until the outcomes are written, so nobody can take these shards in between.
SELECT l.shard, l.epoch
FROM JSON_TABLE(:3, '$[*]' COLUMNS (shard smallint PATH '$.shard', epoch bigint PATH '$.epoch')) settled
STRAIGHT_JOIN {shards} l FORCE INDEX (PRIMARY) ON l.relay_name = :1 AND l.shard = settled.shard
WHERE l.owner = :2 AND l.epoch = settled.epoch
/*!80019 FOR SHARE OF l */ /*M!100600 LOCK IN SHARE MODE */;

-- Waiting here for a producer that has met an event by its dedup_key, with other events locked, could end in a deadlock.
SELECT e.id
FROM JSON_TABLE(:3, '$[*]' COLUMNS (id bigint PATH '$.id', shard smallint PATH '$.shard', epoch bigint PATH '$.epoch')) settled
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = settled.id AND e.shard = settled.shard
WHERE (settled.shard, settled.epoch) IN ({proven}) AND e.status = 'PENDING'
FOR UPDATE /*!80019 OF e */ NOWAIT;

UPDATE JSON_TABLE(:3, '$[*]' COLUMNS (id bigint PATH '$.id', published_to text CHARACTER SET utf8mb4 PATH '$.published_to')) settled
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = settled.id
SET e.status = 'PUBLISHED', e.published_at = utc_timestamp(6), e.published_to = settled.published_to, e.last_error = NULL
WHERE settled.id IN ({picked});

INSERT INTO {versions} (aggregate_type, aggregate_id, version)
SELECT gone.aggregate_type, gone.aggregate_id, gone.version
FROM (
  SELECT aggregate_type, aggregate_id, max(aggregate_version) AS version
  FROM {events} FORCE INDEX (PRIMARY)
  WHERE id IN ({picked}) AND aggregate_version IS NOT NULL
  GROUP BY aggregate_type, aggregate_id
) gone
ORDER BY gone.aggregate_type, gone.aggregate_id
ON DUPLICATE KEY UPDATE {versions}.version = greatest({versions}.version, gone.version), left_at = utc_timestamp(6);

SELECT id FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked WHERE id IS NOT NULL;
