-- The sink at which an event e became DEAD the last time: a part of conditions.
(SELECT a.sink FROM {attempts} a WHERE a.event = e.id AND a.outcome = 'dead' ORDER BY a.id DESC LIMIT 1);
