-- :1 relay name, :2 member id, :3 settlements as JSON, in the order of the shards. Returns the ids that were written.
-- Locks as in settle_published.sql.
SELECT l.shard, l.epoch
FROM JSON_TABLE(:3, '$[*]' COLUMNS (shard smallint PATH '$.shard', epoch bigint PATH '$.epoch')) settled
STRAIGHT_JOIN {shards} l FORCE INDEX (PRIMARY) ON l.relay_name = :1 AND l.shard = settled.shard
WHERE l.owner = :2 AND l.epoch = settled.epoch
/*!80019 FOR SHARE OF l */ /*M!100600 LOCK IN SHARE MODE */;

SELECT postrider_n
FROM JSON_TABLE(:3, '$[*]' COLUMNS (
  postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id', postrider_shard smallint PATH '$.shard', postrider_epoch bigint PATH '$.epoch'
)) postrider_settled
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
WHERE (postrider_shard, postrider_epoch) IN ({proven}) AND {row_is_pending} AND {shard_of_row} = postrider_shard
  AND NOT (left({key_of_row}, 767) <=> (
    SELECT f.event_key FROM {failures} f WHERE f.event = postrider_id AND f.their_state = 'PENDING' AND f.state <> 'PENDING'
  ))
FOR UPDATE /*!80019 OF postrider_theirs */ NOWAIT;

INSERT INTO {failures} (event, event_key, state, their_state, retry_count, next_attempt_at, last_error)
SELECT failed.event, failed.event_key, failed.state, failed.their_state, failed.retry_count, failed.next_attempt_at, failed.last_error
FROM (
  SELECT postrider_id AS event, left({key_of_row}, 767) AS event_key, postrider_state AS state,
         CASE postrider_state WHEN 'DEAD' THEN '{their_dead}' ELSE 'PENDING' END AS their_state, postrider_retry_count AS retry_count,
         utc_timestamp(6) + INTERVAL round(postrider_retry_after * 1000000) MICROSECOND AS next_attempt_at, postrider_error AS last_error
  FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id',
    postrider_state varchar(10) CHARACTER SET utf8mb4 PATH '$.state', postrider_retry_count int PATH '$.retry_count',
    postrider_retry_after double PATH '$.retry_after', postrider_error text CHARACTER SET utf8mb4 PATH '$.error'
  )) postrider_settled
  STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
  WHERE postrider_n IN ({picked})
) failed
ON DUPLICATE KEY UPDATE
  event_key = failed.event_key, state = failed.state, their_state = failed.their_state, retry_count = failed.retry_count,
  next_attempt_at = failed.next_attempt_at, last_error = failed.last_error;

UPDATE JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id',
  postrider_state varchar(10) CHARACTER SET utf8mb4 PATH '$.state', postrider_retry_count int PATH '$.retry_count',
  postrider_retry_after double PATH '$.retry_after', postrider_error text CHARACTER SET utf8mb4 PATH '$.error'
  )) postrider_settled
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
SET {set_failed}
WHERE postrider_n IN ({picked});

INSERT INTO {versions} (aggregate_type, aggregate_id, version)
SELECT gone.aggregate_type, gone.aggregate_id, gone.version
FROM (
  SELECT left({type_of_row}, 255) AS aggregate_type, left({aggregate_of_row}, 512) AS aggregate_id, max({version_of_row}) AS version
  FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id', postrider_state varchar(10) CHARACTER SET utf8mb4 PATH '$.state')) postrider_settled
  STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
  WHERE postrider_n IN ({picked}) AND {version_of_row} IS NOT NULL AND postrider_state = 'DEAD'
  GROUP BY 1, 2
) gone
ORDER BY gone.aggregate_type, gone.aggregate_id
ON DUPLICATE KEY UPDATE {versions}.version = greatest({versions}.version, gone.version), left_at = utc_timestamp(6);

INSERT INTO {holds} (event, event_key)
SELECT held.event, held.event_key
FROM (
  SELECT postrider_id AS event, left({key_of_row}, 767) AS event_key
  FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id', postrider_holds boolean PATH '$.holds')) postrider_settled
  STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
  WHERE postrider_n IN ({picked}) AND postrider_holds IS TRUE
) held
ON DUPLICATE KEY UPDATE event_key = held.event_key, held_at = utc_timestamp(6);

INSERT INTO {attempts} (event, outcome, error, actor, sink)
SELECT postrider_id, CASE postrider_state WHEN 'DEAD' THEN 'dead' ELSE 'retry' END, postrider_error, :2, postrider_sink
FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id', postrider_state varchar(10) CHARACTER SET utf8mb4 PATH '$.state',
  postrider_error text CHARACTER SET utf8mb4 PATH '$.error', postrider_sink text CHARACTER SET utf8mb4 PATH '$.sink', postrider_held boolean PATH '$.held')) postrider_settled
WHERE postrider_n IN ({picked}) AND postrider_held IS NOT TRUE;

SELECT postrider_id FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id')) postrider_settled WHERE postrider_n IN ({picked});
