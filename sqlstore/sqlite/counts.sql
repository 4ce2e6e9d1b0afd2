-- ?1 what to count up to. Returns PENDING (as two counts), PROCESSING, DEAD, DISCARDED, and an estimate of all rows.
SELECT
  (SELECT count(*) FROM (
    SELECT 1 FROM {events} WHERE status = 'PENDING' AND next_attempt_at <= created_at ORDER BY shard, id LIMIT ?1)),
  (SELECT count(*) FROM (
    SELECT 1 FROM {events} WHERE status = 'PENDING' AND next_attempt_at > created_at ORDER BY shard, next_attempt_at, id LIMIT ?1)),
  (SELECT count(*) FROM (SELECT 1 FROM {events} WHERE status = 'PROCESSING' ORDER BY processing_until, id LIMIT ?1)),
  (SELECT count(*) FROM (SELECT 1 FROM {events} WHERE status = 'DEAD' ORDER BY id LIMIT ?1)),
  (SELECT count(*) FROM (SELECT 1 FROM {events} WHERE status = 'DISCARDED' ORDER BY id LIMIT ?1)),
  coalesce((SELECT max(id) FROM {events}) - (SELECT min(id) FROM {events}) + 1, 0);
