-- ? events as JSON. One parameter, so that the statement is the same for any number of events.
INSERT INTO {events} (event_id, aggregate_type, aggregate_id, event_type, aggregate_version, topic, payload,
  content_type, headers, dedup_key, next_attempt_at)
SELECT event.event_id, event.aggregate_type, event.aggregate_id, event.event_type, event.aggregate_version, event.topic, {payload},
  event.content_type, event.headers, event.dedup_key, coalesce(event.next_attempt_at, utc_timestamp(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  place             FOR ORDINALITY,
  event_id          varchar(36)  CHARACTER SET utf8mb4 PATH '$.event_id',
  aggregate_type    varchar(255) CHARACTER SET utf8mb4 PATH '$.aggregate_type',
  aggregate_id      varchar(255) CHARACTER SET utf8mb4 PATH '$.aggregate_id',
  event_type        varchar(255) CHARACTER SET utf8mb4 PATH '$.event_type',
  aggregate_version bigint                             PATH '$.aggregate_version',
  topic             varchar(255) CHARACTER SET utf8mb4 PATH '$.topic',
  payload           longtext     CHARACTER SET utf8mb4 PATH '$.payload',
  content_type      varchar(255) CHARACTER SET utf8mb4 PATH '$.content_type',
  headers           longtext     CHARACTER SET utf8mb4 PATH '$.headers',
  dedup_key         varchar(255) CHARACTER SET utf8mb4 PATH '$.dedup_key',
  next_attempt_at   datetime(6)                        PATH '$.next_attempt_at'
)) event
ORDER BY event.place
