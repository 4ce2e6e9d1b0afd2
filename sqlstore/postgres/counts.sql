-- $1 what to count up to. Returns PENDING (as two counts), PROCESSING, DEAD, DISCARDED, and an estimate of all rows.
-- Each count walks its index and stops; with other plans, which old statistics can make look cheap, it would first go
-- through the whole table or the whole backlog.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);

SELECT
  (SELECT count(*) FROM (
    SELECT FROM {events} WHERE status = 'PENDING' AND next_attempt_at <= created_at ORDER BY shard, id LIMIT $1) ready),
  (SELECT count(*) FROM (
    SELECT FROM {events} WHERE status = 'PENDING' AND next_attempt_at > created_at ORDER BY shard, next_attempt_at, id LIMIT $1) waiting),
  (SELECT count(*) FROM (SELECT FROM {events} WHERE status = 'PROCESSING' ORDER BY processing_until, id LIMIT $1) processing),
  (SELECT count(*) FROM (SELECT FROM {events} WHERE status = 'DEAD' ORDER BY id LIMIT $1) dead),
  (SELECT count(*) FROM (SELECT FROM {events} WHERE status = 'DISCARDED' ORDER BY id LIMIT $1) discarded),
  coalesce(pg_stat_get_live_tuples('{events}'::regclass), 0);
