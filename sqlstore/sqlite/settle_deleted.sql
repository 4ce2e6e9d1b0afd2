-- Like settle_published.sql, for outboxes that do not keep published events.
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
