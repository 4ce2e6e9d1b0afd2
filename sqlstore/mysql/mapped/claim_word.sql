-- A part of claim_candidates.sql: the rows with one of the words that wait.
(
  SELECT 1 AS turn, e.id, e.ref
  FROM {rows_walk} e
  WHERE {pending_word} AND {wanted}
    AND coalesce((
      SELECT CASE f.state WHEN 'PENDING' THEN f.next_attempt_at ELSE CAST('9999-12-31' AS DATETIME(6)) END
      FROM {failures} f
      WHERE f.event = e.ref AND f.event_key = left(e.event_key, 767) AND f.their_state = 'PENDING'
    ), e.their_next_attempt_at, CAST('1970-01-01' AS DATETIME(6))) <= utc_timestamp(6)
  ORDER BY {row_order}
  LIMIT {look}
);
