-- $1 settlements as JSON, $2 member id. Returns the ids that were written.
WITH settled AS (
  SELECT * FROM json_to_recordset($1::text::json)
    AS settled(id bigint, token uuid, state text, retry_count int, retry_after float8, error text, sink text)
), failed AS (
  UPDATE {events} e
  SET status = settled.state, retry_count = settled.retry_count, last_error = settled.error,
      next_attempt_at = now() + settled.retry_after * interval '1 second', claim_token = NULL, processing_until = NULL
  FROM settled
  WHERE e.id = settled.id AND e.status = 'PROCESSING' AND e.claim_token = settled.token
  RETURNING e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version, settled.state, settled.error, settled.sink
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
