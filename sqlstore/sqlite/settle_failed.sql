-- ?1 relay name, ?2 member id, ?3 settlements as JSON. Returns the ids that were written.
INSERT INTO {attempts} (event, outcome, error, actor)
SELECT e.id, CASE settled.value ->> 'state' WHEN 'DEAD' THEN 'dead' ELSE 'retry' END, settled.value ->> 'error', ?2
FROM json_each(?3) settled
JOIN {shards} l ON l.relay_name = ?1 AND l.owner = ?2
  AND l.shard = settled.value ->> 'shard' AND l.epoch = settled.value ->> 'epoch'
JOIN {events} e ON e.id = settled.value ->> 'id' AND e.shard = l.shard AND e.status = 'PENDING';

UPDATE {events} AS e
SET status = settled.value ->> 'state', retry_count = settled.value ->> 'retry_count',
    last_error = settled.value ->> 'error',
    next_attempt_at = strftime('%Y-%m-%d %H:%M:%f', 'now', printf('+%.3f seconds', settled.value ->> 'retry_after'))
FROM json_each(?3) settled
JOIN {shards} l ON l.relay_name = ?1 AND l.owner = ?2
  AND l.shard = settled.value ->> 'shard' AND l.epoch = settled.value ->> 'epoch'
WHERE e.id = settled.value ->> 'id' AND e.shard = l.shard AND e.status = 'PENDING'
RETURNING id;
