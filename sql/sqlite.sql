-- ?1 events as JSON. One parameter, so that the statement is the same for any number of events.
INSERT INTO {events} (event_id, aggregate_type, aggregate_id, event_type, aggregate_version, topic, payload,
  content_type, headers, dedup_key, next_attempt_at)
SELECT value ->> 'event_id', value ->> 'aggregate_type', value ->> 'aggregate_id', value ->> 'event_type',
  value ->> 'aggregate_version', value ->> 'topic', {payload}, value ->> 'content_type', value -> 'headers',
  value ->> 'dedup_key', coalesce(value ->> 'next_attempt_at', strftime('%Y-%m-%d %H:%M:%f', 'now'))
FROM json_each(?1)
WHERE true -- without it ON would be taken for that of a join
ORDER BY key
