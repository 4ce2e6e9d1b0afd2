SELECT id, event_id, aggregate_type, aggregate_id, event_type, coalesce(aggregate_version, 0), coalesce(topic, ''), payload,
       content_type, headers, coalesce(dedup_key, ''),
       CASE WHEN next_attempt_at > created_at THEN date_format(next_attempt_at, '%Y-%m-%dT%H:%i:%s.%fZ') END
FROM {events}
ORDER BY id
