-- Like claim_failed.sql, for outcomes that their table refuses: there the event just waits again.
WITH settled AS (
  SELECT * FROM json_to_recordset($1::text::json)
    AS settled(id text, token text, state text, retry_count int, retry_after float8, error text, sink text)
), failed AS (
  UPDATE {theirs} postrider_theirs
  SET {set_released}
  FROM (SELECT s.id AS postrider_id, s.token AS postrider_token, s.state AS postrider_state, s.retry_count AS postrider_retry_count,
               s.retry_after AS postrider_retry_after, s.error AS postrider_error,
               s.sink AS postrider_sink FROM settled s) postrider_settled
  WHERE postrider_theirs.{id} = postrider_id::{id_type} AND {row_is_claimed} AND {token_of_row} = postrider_token
  RETURNING postrider_id AS id, {type_of_row} AS aggregate_type, {aggregate_of_row} AS aggregate_id, {version_of_row} AS aggregate_version,
            {key_of_row} AS event_key, postrider_state AS state, postrider_retry_count AS retry_count,
            postrider_retry_after AS retry_after, postrider_error AS error, postrider_sink AS sink
), recorded AS (
  INSERT INTO {failures} AS f (event, event_key, state, their_state, retry_count, next_attempt_at, last_error)
  SELECT id, event_key, state, 'PENDING', retry_count, now() + retry_after * interval '1 second', error
  FROM failed
  ON CONFLICT (event) DO UPDATE
  SET event_key = excluded.event_key, state = excluded.state, their_state = excluded.their_state,
      retry_count = excluded.retry_count, next_attempt_at = excluded.next_attempt_at, last_error = excluded.last_error
), versions AS (
  INSERT INTO {versions} AS v (aggregate_type, aggregate_id, version)
  SELECT aggregate_type, aggregate_id, max(aggregate_version)
  FROM failed
  WHERE aggregate_version IS NOT NULL AND state = 'DEAD'
  GROUP BY aggregate_type, aggregate_id
  ORDER BY aggregate_type, aggregate_id
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET version = greatest(v.version, excluded.version), left_at = excluded.left_at
), kept AS (
  INSERT INTO {attempts} (event, outcome, error, actor, sink)
  SELECT id, CASE state WHEN 'DEAD' THEN 'dead' ELSE 'retry' END, error, $2, sink FROM failed
)
SELECT id FROM failed;
