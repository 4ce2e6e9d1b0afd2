-- Side rows whose event is gone, or has come into a state for which they do not hold; then what was kept of events that are gone.
DELETE FROM {failures} f
WHERE NOT EXISTS (SELECT FROM {rows} e WHERE e.id = f.event::{id_type} AND e.settled_state = f.their_state);

DELETE FROM {attempts} a
WHERE NOT EXISTS (SELECT FROM {rows} e WHERE e.id = a.event::{id_type});
