-- :1 settlements as JSON, :2 member id. Returns the ids that were written. Locks without waiting, as settle_published.sql
-- does.
SELECT e.id
FROM JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', token char(36) CHARACTER SET utf8mb4 PATH '$.token')) settled
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = settled.id
WHERE e.status = 'PROCESSING' AND e.claim_token = settled.token
FOR UPDATE /*!80019 OF e */ NOWAIT;

UPDATE JSON_TABLE(:1, '$[*]' COLUMNS (
  id bigint PATH '$.id', state varchar(10) CHARACTER SET utf8mb4 PATH '$.state', retry_count int PATH '$.retry_count',
  retry_after double PATH '$.retry_after', error text CHARACTER SET utf8mb4 PATH '$.error'
)) settled
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = settled.id
SET e.status = settled.state, e.retry_count = settled.retry_count, e.last_error = settled.error,
    e.next_attempt_at = utc_timestamp(6) + INTERVAL round(settled.retry_after * 1000000) MICROSECOND,
    e.claim_token = NULL, e.processing_until = NULL
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

INSERT INTO {attempts} (event, outcome, error, actor, sink)
SELECT id, CASE state WHEN 'DEAD' THEN 'dead' ELSE 'retry' END, error, :2, sink
FROM JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', state varchar(10) CHARACTER SET utf8mb4 PATH '$.state', error text CHARACTER SET utf8mb4 PATH '$.error',
  sink text CHARACTER SET utf8mb4 PATH '$.sink')) settled
WHERE id IN ({picked});

SELECT id FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked WHERE id IS NOT NULL;
