SELECT id, event_id, aggregate_type, aggregate_id, event_type, coalesce(aggregate_version, 0), coalesce(topic, ''), payload,
       content_type, headers, coalesce(dedup_key, ''),
       CASE WHEN next_attempt_at > created_at THEN to_char(next_attempt_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') END
FROM {events}
ORDER BY id
