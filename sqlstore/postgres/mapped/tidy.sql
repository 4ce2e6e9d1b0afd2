-- For this transaction only; see read.sql.
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

-- $1 event behind which the chunk begins, $2 its last event. Deletes side rows whose event is gone, or has come into a state for
-- which they do not hold; holds whose event is gone or not DEAD; then what was kept of events that are gone. OFFSET 0 keeps each check an index probe.
DELETE FROM {failures} f
USING (SELECT event, next_attempt_at FROM {failures} WHERE event > $1 AND event <= $2) seen
WHERE f.event = seen.event AND f.next_attempt_at = seen.next_attempt_at AND NOT EXISTS (
  SELECT FROM {rows} e WHERE e.id = f.event::{id_type} AND e.event_key = f.event_key AND e.settled_state = f.their_state OFFSET 0
);

-- A settle that writes a hold anew meanwhile gives it another time.
DELETE FROM {holds} h
USING (SELECT event, held_at FROM {holds} WHERE event > $1 AND event <= $2) seen
WHERE h.event = seen.event AND h.held_at = seen.held_at AND NOT EXISTS (
  SELECT FROM {events} e WHERE e.id = h.event::{id_type} AND e.event_key = h.event_key AND e.status = 'DEAD' OFFSET 0
);

DELETE FROM {attempts} a
WHERE a.event > $1 AND a.event <= $2 AND NOT EXISTS (SELECT FROM {rows} e WHERE e.id = a.event::{id_type} OFFSET 0);
