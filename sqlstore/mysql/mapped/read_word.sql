-- A part of read.sql: the rows with one of the words that wait, in outbox order. Queries that return one value are never
-- turned into joins, which could leave that order.
(
  SELECT e.id, e.ord
  FROM {rows_walk} e
  WHERE {pending_word} AND {wanted}
    AND coalesce((
      SELECT CASE f.state WHEN 'PENDING' THEN f.next_attempt_at ELSE CAST('9999-12-31' AS DATETIME(6)) END
      FROM {failures} f
      WHERE f.event = e.ref AND f.event_key = left(e.event_key, 767) AND f.their_state = 'PENDING'
    ), e.their_next_attempt_at, CAST('1970-01-01' AS DATETIME(6))) <= utc_timestamp(6)
    AND coalesce((
      SELECT 1
      FROM {failures} f FORCE INDEX ({index_failures_blocking})
      STRAIGHT_JOIN {rows} b ON b.id = {id_failed} AND left(b.event_key, 767) = f.event_key AND b.their_state = 'PENDING'
      WHERE f.blocking_key = left(e.event_key, 767) AND f.their_state = 'PENDING'
        AND (b.ord < e.ord OR b.ord = e.ord AND b.id < e.id)
        AND (b.aggregate_type = e.aggregate_type AND b.aggregate_version > e.aggregate_version) IS NOT TRUE
      LIMIT 1
    ), 0) = 0
    AND coalesce((SELECT 1 FROM {holds} h FORCE INDEX ({index_holds_key}) WHERE h.event_key = left(e.event_key, 767) LIMIT 1), 0) = 0
  ORDER BY {row_order}
  LIMIT :7
);
