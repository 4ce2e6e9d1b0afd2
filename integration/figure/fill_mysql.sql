-- Keys, bytes of a payload, events.
INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload)
WITH digits AS (
  SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
), numbers AS (
  SELECT 1 + d0.d + 10 * d1.d + 100 * d2.d + 1000 * d3.d + 10000 * d4.d + 100000 * d5.d AS n
  FROM digits d0, digits d1, digits d2, digits d3, digits d4, digits d5
)
SELECT 'figure', concat('k-', n % ?), 'Measured', concat(rpad(concat('{"n":"', n), ? - 2, 'x'), '"}')
FROM numbers
WHERE n <= ?
ORDER BY n
