-- For this transaction only; see read.sql.
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- $1 event behind which the chunk begins, $2 its last event. Deletes holds whose event is gone or no longer DEAD, and marks that
-- reads look at no longer. A settle that writes the hold anew meanwhile gives it another time.
DELETE FROM {holds} h
USING (SELECT event, held_at FROM {holds} WHERE event > $1::bigint AND event <= $2::bigint) seen
WHERE h.event = seen.event AND h.held_at = seen.held_at
  AND CASE
    WHEN h.redriven THEN h.held_at < now() - interval '5 minutes'
    ELSE (SELECT e.status FROM {events} e WHERE e.id = h.event) IS DISTINCT FROM 'DEAD'
  END;
