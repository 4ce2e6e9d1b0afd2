-- The sink at which an event e became DEAD the last time: a part of conditions.
(
  SELECT a.sink
  FROM {attempts} a FORCE INDEX (PRIMARY)
  WHERE a.id = (SELECT max(d.id) FROM {attempts} d FORCE INDEX ({index_attempts_event}) WHERE d.event = e.id AND d.outcome = 'dead')
);
