SELECT id, event_id, aggregate_type, aggregate_id, event_type, coalesce(aggregate_version, 0), coalesce(topic, ''), payload,
       content_type, headers, coalesce(dedup_key, ''),
       CASE WHEN next_attempt_at > created_at THEN replace(next_attempt_at, ' ', 'T') || 'Z' END
FROM {events}
ORDER BY id
