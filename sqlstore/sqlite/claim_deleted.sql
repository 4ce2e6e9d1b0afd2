-- Like claim_published.sql, for outboxes that do not keep published events.
INSERT INTO {versions} (aggregate_type, aggregate_id, version)
SELECT e.aggregate_type, e.aggregate_id, max(e.aggregate_version)
FROM json_each(?1) settled
JOIN {events} e ON e.id = settled.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = settled.value ->> 'token'
WHERE e.aggregate_version IS NOT NULL
GROUP BY e.aggregate_type, e.aggregate_id
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
SET version = max(version, excluded.version), left_at = excluded.left_at;

DELETE FROM {attempts}
WHERE event IN (
  SELECT e.id
  FROM json_each(?1) settled
  JOIN {events} e ON e.id = settled.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = settled.value ->> 'token'
);

DELETE FROM {events}
WHERE id IN (
  SELECT e.id
  FROM json_each(?1) settled
  JOIN {events} e ON e.id = settled.value ->> 'id' AND e.status = 'PROCESSING' AND e.claim_token = settled.value ->> 'token'
)
RETURNING id;
