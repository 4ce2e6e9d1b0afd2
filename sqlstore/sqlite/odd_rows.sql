-- ?1 number of shards. Returns rows that no relay will ever pick up or clean, found by indexes alone: what they are, how
-- many (up to 1000), the id of one, and what to do.
WITH RECURSIVE numbers(shard) AS (
  SELECT 0 UNION ALL SELECT shard + 1 FROM numbers WHERE shard + 1 < ?1
), last AS (
  SELECT id, next_attempt_at FROM {events} WHERE id IN (
    SELECT (
      SELECT e.id FROM {events} e
      WHERE e.shard = numbers.shard AND e.status = 'PENDING' AND e.next_attempt_at > e.created_at
      ORDER BY e.next_attempt_at DESC, e.id DESC
      LIMIT 1
    ) FROM numbers
  )
)
SELECT 'PROCESSING without a processing_until, so that no relay takes them', count(*), min(id), 'correct them by SQL'
FROM (
  SELECT id FROM {events} WHERE status = 'PROCESSING' AND processing_until IS NULL
  ORDER BY processing_until, id
  LIMIT 1000
)
HAVING count(*) > 0
UNION ALL
SELECT 'PROCESSING although their claims ran out more than an hour ago, because no relay is at work', count(*), min(id),
       'start a relay, which takes them over'
FROM (
  SELECT id FROM {events}
  WHERE status = 'PROCESSING' AND processing_until < strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 hour') AND claim_token IS NOT NULL
  ORDER BY processing_until, id
  LIMIT 1000
)
HAVING count(*) > 0
UNION ALL
SELECT 'PROCESSING without a claim_token although their time ran out more than an hour ago, so that no relay with claim: row takes them over', count(*), min(id),
       'start a relay with claim: shard, or correct them by SQL'
FROM (
  SELECT id FROM {events}
  WHERE status = 'PROCESSING' AND processing_until < strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 hour') AND claim_token IS NULL
  ORDER BY processing_until, id
  LIMIT 1000
)
HAVING count(*) > 0
UNION ALL
SELECT 'PENDING but not due for more than a year', count(*), min(id), 'correct them by SQL'
FROM last
WHERE next_attempt_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '+366 days')
HAVING count(*) > 0
UNION ALL
SELECT 'PUBLISHED without published_at, which cleaning leaves alone', count(*), min(id), 'correct them by SQL'
FROM (SELECT id, status, published_at FROM {events} ORDER BY id LIMIT 1000)
WHERE status = 'PUBLISHED' AND published_at IS NULL
HAVING count(*) > 0;
