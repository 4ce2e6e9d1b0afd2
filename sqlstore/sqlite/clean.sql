-- ?1 outbox id to walk on from, ?2 limit, ?3 cutoff. Returns the ids that were deleted.
DELETE FROM {attempts}
WHERE event IN (
  SELECT e.id
  FROM {events} e
  WHERE e.id IN (SELECT id FROM {events} WHERE id > ?1 ORDER BY id LIMIT ?2)
    AND (
      e.status = 'PUBLISHED' AND e.published_at < ?3
      OR e.status = 'DISCARDED' AND NOT EXISTS (SELECT 1 FROM {attempts} a WHERE a.event = e.id AND a.at >= ?3)
    )
);

DELETE FROM {events}
WHERE id IN (SELECT id FROM {events} WHERE id > ?1 ORDER BY id LIMIT ?2)
  AND (
    status = 'PUBLISHED' AND published_at < ?3
    OR status = 'DISCARDED' AND NOT EXISTS (SELECT 1 FROM {attempts} a WHERE a.event = {events}.id AND a.at >= ?3)
  )
RETURNING id;
