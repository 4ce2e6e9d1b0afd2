-- $1 what to count up to. Returns PENDING (as two counts), PROCESSING, DEAD, DISCARDED, and an estimate of all rows.
SELECT
  (SELECT count(*) FROM (SELECT FROM {events} e WHERE {state_pending} LIMIT $1) pending),
  0,
  (SELECT count(*) FROM (SELECT FROM {events} e WHERE {state_processing} LIMIT $1) processing),
  (SELECT count(*) FROM (SELECT FROM {events} e WHERE {state_dead} LIMIT $1) dead),
  (SELECT count(*) FROM (SELECT FROM {events} e WHERE {state_discarded} LIMIT $1) discarded),
  coalesce(pg_stat_get_live_tuples('{theirs}'::regclass), 0);
