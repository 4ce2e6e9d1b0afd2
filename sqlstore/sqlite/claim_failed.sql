-- ?1 settlements as JSON, ?2 member id. Returns the ids that were written.
INSERT INTO {versions} (aggregate_type, aggregate_id, version)
SELECT e.aggregate_type, e.aggregate_id, max(e.aggregate_version)
FROM json_each(?1) settled
JOIN {events} e ON e.id = settled.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = settled.value ->> 'token'
WHERE e.aggregate_version IS NOT NULL AND settled.value ->> 'state' = 'DEAD'
GROUP BY e.aggregate_type, e.aggregate_id
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
SET version = max(version, excluded.version), left_at = excluded.left_at;

INSERT INTO {attempts} (event, outcome, error, actor, sink)
SELECT e.id, CASE settled.value ->> 'state' WHEN 'DEAD' THEN 'dead' ELSE 'retry' END, settled.value ->> 'error', ?2, settled.value ->> 'sink'
FROM json_each(?1) settled
JOIN {events} e ON e.id = settled.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = settled.value ->> 'token';

UPDATE {events} AS e
SET status = settled.value ->> 'state', retry_count = settled.value ->> 'retry_count',
    last_error = settled.value ->> 'error',
    next_attempt_at = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', settled.value ->> 'retry_after')),
    claim_token = NULL, processing_until = NULL
FROM json_each(?1) settled
WHERE e.id = settled.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = settled.value ->> 'token'
RETURNING id;
