-- $1 id to walk on from, $2 limit, $3 cutoff. Returns the ids that were deleted.
WITH chunk AS (
  SELECT e.id, e.ref
  FROM {rows} e
  WHERE $1::text = '' OR e.id > nullif($1::text, '')::{id_type}
  ORDER BY e.id
  LIMIT $2
), old AS (
  SELECT e.id, e.ref, e.their_state
  FROM {events} e
  WHERE e.id = ANY (ARRAY(SELECT id FROM chunk))
    AND (
      e.status = 'PUBLISHED' AND coalesce(e.published_at, e.created_at) < $3::text::timestamptz
      OR e.status = 'DISCARDED' AND NOT EXISTS (
        SELECT FROM {attempts} a WHERE a.event = e.ref AND a.at >= $3::text::timestamptz
      )
    )
), deleted AS (
  DELETE FROM {theirs} postrider_theirs
  USING (SELECT o.ref AS postrider_id, o.their_state AS postrider_their_state FROM old o) postrider_old
  WHERE postrider_theirs.{id} = postrider_id::{id_type} AND {state_of_row} = postrider_their_state
  RETURNING postrider_id AS id
), recovered AS (
  DELETE FROM {failures} f WHERE f.event = ANY (ARRAY(SELECT id FROM deleted))
), forgotten AS (
  DELETE FROM {attempts} a WHERE a.event = ANY (ARRAY(SELECT id FROM deleted))
)
SELECT id FROM deleted;
