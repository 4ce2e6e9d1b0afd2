-- Like claim_published.sql, for outboxes that do not keep published events. Rows are locked as in clean.sql.
SELECT e.id
FROM (
  SELECT s.event_id, s.dedup_key, settled.token
  FROM JSON_TABLE(:1, '$[*]' COLUMNS (id bigint PATH '$.id', token char(36) CHARACTER SET utf8mb4 PATH '$.token')) settled
  STRAIGHT_JOIN {events} s FORCE INDEX (PRIMARY) ON s.id = settled.id
  LIMIT 1000000
) sent
STRAIGHT_JOIN {events} e FORCE INDEX ({index_event_id}) ON e.event_id = sent.event_id
LEFT JOIN {events} same FORCE INDEX ({index_dedup}) ON same.dedup_key = sent.dedup_key
WHERE e.status = 'PROCESSING' AND e.claim_token = sent.token
FOR UPDATE /*!80019 OF e, same */ NOWAIT;

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

DELETE a
FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {attempts} a FORCE INDEX ({index_attempts_event}) ON a.event = picked.id;

DELETE e
FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = picked.id;

SELECT id FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked WHERE id IS NOT NULL;
