-- :1 outbox id to walk on from, :2 limit, :3 cutoff. Returns the ids that were deleted.
-- The rows are locked in the order in which producers do it that meet them by a unique key: first in its index, then
-- in the table. So neither can wait for the other while holding what that one needs.
SELECT e.id
FROM (
  SELECT c.event_id, c.dedup_key
  FROM (
    SELECT id, event_id, dedup_key, status, published_at FROM {events} FORCE INDEX (PRIMARY) WHERE id > :1 ORDER BY id LIMIT :2
  ) c
  WHERE c.status = 'PUBLISHED' AND c.published_at < :3
    OR c.status = 'DISCARDED' AND NOT EXISTS (SELECT 1 FROM {attempts} a WHERE a.event = c.id AND a.at >= :3)
  LIMIT :2
) old
STRAIGHT_JOIN {events} e FORCE INDEX ({index_event_id}) ON e.event_id = old.event_id
LEFT JOIN {events} same FORCE INDEX ({index_dedup}) ON same.dedup_key = old.dedup_key
WHERE e.status IN ('PUBLISHED', 'DISCARDED') AND (old.dedup_key IS NULL OR same.id = e.id)
FOR UPDATE /*!80019 OF e, same */ SKIP LOCKED;

DELETE a
FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {attempts} a FORCE INDEX ({index_attempts_event}) ON a.event = picked.id;

DELETE e
FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked
STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = picked.id;

SELECT id FROM JSON_TABLE('[{picked}]', '$[*]' COLUMNS (id bigint PATH '$')) picked WHERE id IS NOT NULL;
