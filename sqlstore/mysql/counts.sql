-- :1 what to count up to. Returns PENDING (as two counts), PROCESSING, DEAD, DISCARDED, and an estimate of all rows.
SELECT
  (SELECT count(*) FROM (SELECT 1 FROM {events} FORCE INDEX ({index_ready}) WHERE ready_shard IS NOT NULL LIMIT :1) ready),
  (SELECT count(*) FROM (SELECT 1 FROM {events} FORCE INDEX ({index_waiting}) WHERE waiting_shard IS NOT NULL LIMIT :1) waiting),
  (SELECT count(*) FROM (SELECT 1 FROM {events} FORCE INDEX ({index_processing}) WHERE processing_due IS NOT NULL LIMIT :1) processing),
  (SELECT count(*) FROM (SELECT 1 FROM {events} FORCE INDEX ({index_given_up}) WHERE given_up = 'DEAD' LIMIT :1) dead),
  (SELECT count(*) FROM (SELECT 1 FROM {events} FORCE INDEX ({index_given_up}) WHERE given_up = 'DISCARDED' LIMIT :1) discarded),
  coalesce((SELECT max(id) - min(id) + 1 FROM {events}), 0);
