-- :1 settlements as JSON. Returns the ids that were written. Locks without waiting, as settle_published.sql does.
SELECT e.id
FROM JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', token char(36) CHARACTER SET utf8mb4 PATH '$.token')) settled
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = settled.id
WHERE e.status = 'PROCESSING' AND e.claim_token = settled.token
FOR UPDATE /*!80019 OF e */ NOWAIT;

UPDATE JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', published_to text CHARACTER SET utf8mb4 PATH '$.published_to')) settled
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = settled.id
SET e.status = 'PUBLISHED', e.published_at = utc_timestamp(6), e.published_to = settled.published_to, e.last_error = NULL,
    e.claim_token = NULL, e.processing_until = NULL
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
