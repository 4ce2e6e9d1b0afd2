-- $1 number of shards. Returns rows that no relay will ever pick up or clean, found by indexes alone: what they are, how
-- many (up to 1000), the id of one, and what to do.
SELECT 'PROCESSING without a processing_until, so that no relay takes them', count(*), min(id), 'correct them by SQL'
FROM (
  SELECT id FROM {events} WHERE status = 'PROCESSING' AND processing_until IS NULL
  ORDER BY processing_until, id
  LIMIT 1000
) unclaimed
HAVING count(*) > 0
UNION ALL
SELECT 'PROCESSING although their claims ran out more than an hour ago, because no relay is at work', count(*), min(id),
       'start a relay, which takes them over'
FROM (
  SELECT id FROM {events}
  WHERE status = 'PROCESSING' AND processing_until < now() - interval '1 hour' AND claim_token IS NOT NULL
  ORDER BY processing_until, id
  LIMIT 1000
) left_over
HAVING count(*) > 0
UNION ALL
SELECT 'PROCESSING without a claim_token although their time ran out more than an hour ago, so that no relay with claim: row takes them over', count(*), min(id),
       'start a relay with claim: shard, or correct them by SQL'
FROM (
  SELECT id FROM {events}
  WHERE status = 'PROCESSING' AND processing_until < now() - interval '1 hour' AND claim_token IS NULL
  ORDER BY processing_until, id
  LIMIT 1000
) without_token
HAVING count(*) > 0
UNION ALL
SELECT 'PENDING but not due for more than a year', count(*), min(id), 'correct them by SQL'
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
SELECT 'PUBLISHED without published_at, which cleaning leaves alone', count(*), min(id), 'correct them by SQL'
FROM (SELECT id, status, published_at FROM {events} ORDER BY id LIMIT 1000) oldest
WHERE status = 'PUBLISHED' AND published_at IS NULL
HAVING count(*) > 0;
