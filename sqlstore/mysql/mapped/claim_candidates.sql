-- :1 shards, :2 kinds to skip, :3 keys to skip (the three stand in the statement itself, as {wanted}); :4 limit, :5 limit of the
-- events that are to be claimed alone. They are looked up first, more than are wanted ({look}), and then locked by their id.
-- What another claimer has locked is passed over. Who else claims has other tokens, and their ends count nothing.
SELECT postrider_ref
FROM (
  SELECT id AS postrider_id, ref AS postrider_ref
  FROM (
    (
      SELECT 0 AS turn, e.id, e.ref
      FROM {rows} e
      WHERE {state_claimed} AND e.processing_until <= utc_timestamp(6) AND e.claim_token <> '' AND NOT coalesce(substr(e.claim_token, 15, 1) = '8' AND right(e.claim_token, 2) <> '00', false) AND {wanted}
      LIMIT {look}
    )
    UNION ALL
    (
      SELECT 0, e.id, e.ref
      FROM {rows} e
      WHERE {state_claimed} AND e.processing_until <= utc_timestamp(6) AND coalesce(substr(e.claim_token, 15, 1) = '8' AND right(e.claim_token, 2) <> '00', false) AND {wanted}
      LIMIT :5
    )
    UNION ALL
    {claim_words}
    ORDER BY turn, id
    LIMIT {look}
  ) found
) postrider_found
STRAIGHT_JOIN {theirs} postrider_theirs{by_id} ON postrider_theirs.{id} = postrider_id
WHERE {row_is_pending} OR {row_is_claimed} AND {until_of_row} <= utc_timestamp(6)
LIMIT :4
FOR UPDATE /*!80019 OF postrider_theirs */ SKIP LOCKED;

-- Returns them as read.sql does, each with the token of the claim that ran out. One that was tried meanwhile is left out.
SELECT e.ref, e.event_id, e.shard, e.aggregate_type, e.aggregate_id, e.event_type, e.aggregate_version, e.topic,
       e.payload, e.content_type, NULL, coalesce(f.retry_count, 0),
       coalesce(timestampdiff(MICROSECOND, e.created_at, utc_timestamp(6)) / 1000000, 0), NULL, e.headers, e.event_key,
       CASE WHEN e.their_state = 'PROCESSING' THEN e.claim_token ELSE '' END
FROM JSON_TABLE({picked_set}, '$[*]' COLUMNS (postrider_n FOR ORDINALITY, postrider_id varchar(767) CHARACTER SET utf8mb4 PATH '$')) postrider_picked
STRAIGHT_JOIN {rows} e ON e.id = {id_given}
LEFT JOIN {failures} f ON f.event = e.ref AND f.event_key = left(e.event_key, 767) AND f.their_state = 'PENDING'
WHERE e.their_state = 'PROCESSING' OR coalesce(f.next_attempt_at, e.their_next_attempt_at, CAST('1970-01-01' AS DATETIME(6))) <= utc_timestamp(6)
ORDER BY postrider_n;
