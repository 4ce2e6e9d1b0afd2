-- Gives back events whose claims ran out, some at a time.
UPDATE {theirs} postrider_theirs
SET {set_released}
WHERE postrider_theirs.{id} = ANY (ARRAY(
  SELECT e.id FROM {rows} e WHERE {state_claimed} AND e.processing_until <= now()
  LIMIT 1000
  FOR UPDATE SKIP LOCKED
)) AND {row_is_claimed} AND {until_of_row} <= now();
