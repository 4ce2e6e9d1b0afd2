-- :1 what to count up to. Returns PENDING (as two counts), PROCESSING, DEAD, DISCARDED, and an estimate of all rows.
SELECT
  (SELECT count(*) FROM (SELECT 1 FROM {events} e WHERE {state_pending} LIMIT :1) pending),
  0,
  (SELECT count(*) FROM (SELECT 1 FROM {events} e WHERE {state_processing} LIMIT :1) processing),
  (SELECT count(*) FROM (SELECT 1 FROM {events} e WHERE {state_dead} LIMIT :1) dead),
  (SELECT count(*) FROM (SELECT 1 FROM {events} e WHERE {state_discarded} LIMIT :1) discarded),
  coalesce(CASE WHEN {ascends} THEN (SELECT max({id}) - min({id}) + 1 FROM {theirs})
    ELSE (SELECT table_rows FROM information_schema.tables
      WHERE table_schema = coalesce(nullif('{their_schema}', ''), database()) AND table_name = '{their_name}') END, 0);
