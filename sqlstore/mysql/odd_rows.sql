-- :1 number of shards. Returns rows that no relay will ever pick up or clean, found by indexes alone: what they are, how
-- many (up to 1000), the id of one, and what to do.
WITH numbers AS (
  SELECT n - 1 AS shard FROM JSON_TABLE(concat('[0', repeat(',0', :1 - 1), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) list
), last AS (
  SELECT (
    SELECT e.id FROM {events} e FORCE INDEX ({index_waiting})
    WHERE e.waiting_shard = numbers.shard
    ORDER BY e.waiting_shard DESC, e.next_attempt_at DESC, e.id DESC
    LIMIT 1
  ) AS id FROM numbers
)
SELECT 'PROCESSING without a processing_until, so that no relay takes them', count(*), min(id), 'correct them by SQL'
FROM (
  SELECT id FROM {events} FORCE INDEX ({index_processing})
  WHERE processing_due = timestamp '1970-01-01 00:00:00' AND processing_until IS NULL
  ORDER BY processing_due, id
  LIMIT 1000
) unclaimed
HAVING count(*) > 0
UNION ALL
SELECT 'PROCESSING although their claims ran out more than an hour ago, because no relay is at work', count(*), min(id),
       'start a relay, which takes them over'
FROM (
  SELECT id FROM {events} FORCE INDEX ({index_processing})
  WHERE processing_due < utc_timestamp(6) - INTERVAL 1 HOUR AND processing_until IS NOT NULL AND claim_token IS NOT NULL
  ORDER BY processing_due, id
  LIMIT 1000
) left_over
HAVING count(*) > 0
UNION ALL
SELECT 'PROCESSING without a claim_token although their time ran out more than an hour ago, so that no relay with claim: row takes them over', count(*), min(id),
       'start a relay with claim: shard, or correct them by SQL'
FROM (
  SELECT id FROM {events} FORCE INDEX ({index_processing})
  WHERE processing_due < utc_timestamp(6) - INTERVAL 1 HOUR AND processing_until IS NOT NULL AND claim_token IS NULL
  ORDER BY processing_due, id
  LIMIT 1000
) without_token
HAVING count(*) > 0
UNION ALL
SELECT 'PENDING but not due for more than a year', count(*), min(e.id), 'correct them by SQL'
FROM last STRAIGHT_JOIN {events} e FORCE INDEX (PRIMARY) ON e.id = last.id
WHERE e.next_attempt_at > utc_timestamp(6) + INTERVAL 366 DAY
HAVING count(*) > 0
UNION ALL
SELECT 'PUBLISHED without published_at, which cleaning leaves alone', count(*), min(id), 'correct them by SQL'
FROM (SELECT id, status, published_at FROM {events} FORCE INDEX (PRIMARY) ORDER BY id LIMIT 1000) oldest
WHERE status = 'PUBLISHED' AND published_at IS NULL
HAVING count(*) > 0;
