-- $1 outbox id to walk on from, $2 limit, $3 cutoff. Returns the ids that were deleted. The array makes the delete
-- find its rows by the primary key, whatever the statistics say.
WITH chunk AS (
  SELECT id FROM {events} WHERE id > $1::bigint ORDER BY id LIMIT $2
), deleted AS (
  DELETE FROM {events} e
  WHERE e.id = ANY (ARRAY(SELECT id FROM chunk))
    AND (
      e.status = 'PUBLISHED' AND e.published_at < $3::text::timestamptz
      OR e.status = 'DISCARDED' AND NOT EXISTS (
        SELECT FROM {attempts} a WHERE a.event = e.id AND a.at >= $3::text::timestamptz
      )
    )
  RETURNING e.id
), forgotten AS (
  DELETE FROM {attempts} a WHERE a.event = ANY (ARRAY(SELECT id FROM deleted))
)
SELECT id FROM deleted;
