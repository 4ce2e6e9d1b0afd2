-- ?1 settlements as JSON. Returns the ids that were written.
INSERT INTO {versions} (aggregate_type, aggregate_id, version)
SELECT e.aggregate_type, e.aggregate_id, max(e.aggregate_version)
FROM json_each(?1) settled
JOIN {events} e ON e.id = settled.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = settled.value ->> 'token'
WHERE e.aggregate_version IS NOT NULL
GROUP BY e.aggregate_type, e.aggregate_id
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
SET version = max(version, excluded.version), left_at = excluded.left_at;

UPDATE {events} AS e
SET status = 'PUBLISHED', published_at = strftime('%Y-%m-%d %H:%M:%f', 'now'),
    published_to = settled.value ->> 'published_to', last_error = NULL, claim_token = NULL, processing_until = NULL
FROM json_each(?1) settled
WHERE e.id = settled.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = settled.value ->> 'token'
RETURNING id;
