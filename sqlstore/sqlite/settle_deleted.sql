-- Like settle_published.sql, for outboxes that do not keep published events.
INSERT INTO {versions} (aggregate_type, aggregate_id, version)
SELECT e.aggregate_type, e.aggregate_id, max(e.aggregate_version)
FROM json_each(?3) settled
JOIN {shards} l ON l.relay_name = ?1 AND l.owner = ?2
  AND l.shard = settled.value ->> 'shard' AND l.epoch = settled.value ->> 'epoch'
JOIN {events} e ON e.id = settled.value ->> 'id' AND e.shard = l.shard AND e.status = 'PENDING'
WHERE e.aggregate_version IS NOT NULL
GROUP BY e.aggregate_type, e.aggregate_id
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
SET version = max(version, excluded.version), left_at = excluded.left_at;

DELETE FROM {attempts}
WHERE event IN (
  SELECT e.id
  FROM json_each(?3) settled
  JOIN {shards} l ON l.relay_name = ?1 AND l.owner = ?2
    AND l.shard = settled.value ->> 'shard' AND l.epoch = settled.value ->> 'epoch'
  JOIN {events} e ON e.id = settled.value ->> 'id' AND e.shard = l.shard AND e.status = 'PENDING'
);

DELETE FROM {events}
WHERE id IN (
  SELECT e.id
  FROM json_each(?3) settled
  JOIN {shards} l ON l.relay_name = ?1 AND l.owner = ?2
    AND l.shard = settled.value ->> 'shard' AND l.epoch = settled.value ->> 'epoch'
  JOIN {events} e ON e.id = settled.value ->> 'id' AND e.shard = l.shard AND e.status = 'PENDING'
)
RETURNING id;
