-- $1 events as JSON. One parameter, so that the statement is the same for any number of events.
INSERT INTO {events} (event_id, aggregate_type, aggregate_id, event_type, aggregate_version, topic, payload,
  content_type, headers, dedup_key, next_attempt_at)
SELECT event_id, aggregate_type, aggregate_id, event_type, aggregate_version, topic, {payload},
  content_type, headers, dedup_key, coalesce(next_attempt_at AT TIME ZONE 'UTC', now())
FROM ROWS FROM (json_to_recordset($1::text::json) AS (
  event_id          uuid,
  aggregate_type    text,
  aggregate_id      text,
  event_type        text,
  aggregate_version bigint,
  topic             text,
  payload           text,
  content_type      text,
  headers           json,
  dedup_key         text,
  next_attempt_at   timestamp
)) WITH ORDINALITY
ORDER BY ordinality
