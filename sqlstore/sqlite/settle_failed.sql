-- ?1 relay name, ?2 member id, ?3 settlements as JSON. Returns the ids that were written.
INSERT INTO {versions} (aggregate_type, aggregate_id, version)
SELECT e.aggregate_type, e.aggregate_id, max(e.aggregate_version)
FROM json_each(?3) settled
JOIN {shards} l ON l.relay_name = ?1 AND l.owner = ?2
  AND l.shard = settled.value ->> 'shard' AND l.epoch = settled.value ->> 'epoch'
JOIN {events} e ON e.id = settled.value ->> 'id' AND e.shard = l.shard AND e.status = 'PENDING'
WHERE e.aggregate_version IS NOT NULL AND settled.value ->> 'state' = 'DEAD'
GROUP BY e.aggregate_type, e.aggregate_id
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
SET version = max(version, excluded.version), left_at = excluded.left_at;

INSERT INTO {holds} (event, event_key)
SELECT e.id, e.aggregate_id
FROM json_each(?3) settled
JOIN {shards} l ON l.relay_name = ?1 AND l.owner = ?2
  AND l.shard = settled.value ->> 'shard' AND l.epoch = settled.value ->> 'epoch'
JOIN {events} e ON e.id = settled.value ->> 'id' AND e.shard = l.shard AND e.status = 'PENDING'
WHERE settled.value ->> 'holds' IS TRUE
ON CONFLICT (event) DO UPDATE SET event_key = excluded.event_key, held_at = excluded.held_at;

INSERT INTO {attempts} (event, outcome, error, actor, sink)
SELECT e.id, CASE settled.value ->> 'state' WHEN 'DEAD' THEN 'dead' ELSE 'retry' END, settled.value ->> 'error', ?2, settled.value ->> 'sink'
FROM json_each(?3) settled
JOIN {shards} l ON l.relay_name = ?1 AND l.owner = ?2
  AND l.shard = settled.value ->> 'shard' AND l.epoch = settled.value ->> 'epoch'
JOIN {events} e ON e.id = settled.value ->> 'id' AND e.shard = l.shard AND e.status = 'PENDING'
WHERE settled.value ->> 'held' IS NOT TRUE;

UPDATE {events} AS e
SET status = settled.value ->> 'state', retry_count = settled.value ->> 'retry_count',
    last_error = settled.value ->> 'error',
    next_attempt_at = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', settled.value ->> 'retry_after'))
FROM json_each(?3) settled
JOIN {shards} l ON l.relay_name = ?1 AND l.owner = ?2
  AND l.shard = settled.value ->> 'shard' AND l.epoch = settled.value ->> 'epoch'
WHERE e.id = settled.value ->> 'id' AND e.shard = l.shard AND e.status = 'PENDING'
RETURNING id;
