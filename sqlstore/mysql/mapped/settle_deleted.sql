-- Like settle_published.sql, for outboxes that do not keep published events.
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

INSERT INTO {versions} (aggregate_type, aggregate_id, version)
SELECT gone.aggregate_type, gone.aggregate_id, gone.version
FROM (
  SELECT left({type_of_row}, 255) AS aggregate_type, left({aggregate_of_row}, 512) AS aggregate_id, max({version_of_row}) AS version
  FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id')) postrider_settled
  STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
  WHERE postrider_n IN ({picked}) AND {version_of_row} IS NOT NULL
  GROUP BY 1, 2
) gone
ORDER BY gone.aggregate_type, gone.aggregate_id
ON DUPLICATE KEY UPDATE {versions}.version = greatest({versions}.version, gone.version), left_at = utc_timestamp(6);

DELETE f
FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id')) postrider_settled
STRAIGHT_JOIN {failures} f FORCE INDEX (PRIMARY) ON f.event = postrider_id
WHERE postrider_n IN ({picked});

DELETE a
FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id')) postrider_settled
STRAIGHT_JOIN {attempts} a FORCE INDEX ({index_attempts_event}) ON a.event = postrider_id
WHERE postrider_n IN ({picked});

DELETE postrider_theirs
FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id')) postrider_settled
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = {id_given}
WHERE postrider_n IN ({picked});

SELECT postrider_id FROM JSON_TABLE(:3, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$.id')) postrider_settled WHERE postrider_n IN ({picked});
