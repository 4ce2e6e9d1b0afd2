-- $1 number of shards. Returns rows that no relay will ever pick up or clean, found by indexes alone: what they are, how
-- many (up to 1000), and the id of one.
SELECT 'PROCESSING, which only row claims use', count(*), coalesce(min(id), 0)
FROM (SELECT id FROM {events} WHERE status = 'PROCESSING' ORDER BY processing_until, id LIMIT 1000) p
HAVING count(*) > 0
UNION ALL
SELECT 'PENDING but not due for more than a year', count(*), min(id)
FROM generate_series(0, $1::int - 1) AS s(shard)
CROSS JOIN LATERAL (
  SELECT e.id, e.next_attempt_at
  FROM {events} e
  WHERE e.shard = s.shard AND e.status = 'PENDING' AND e.next_attempt_at > e.created_at
  ORDER BY e.next_attempt_at DESC, e.id DESC
  LIMIT 1
) last
WHERE last.next_attempt_at > now() + interval '366 days'
HAVING count(*) > 0
UNION ALL
SELECT 'PUBLISHED without published_at, which cleaning leaves alone', count(*), min(id)
FROM (SELECT id, status, published_at FROM {events} ORDER BY id LIMIT 1000) oldest
WHERE status = 'PUBLISHED' AND published_at IS NULL
HAVING count(*) > 0;
