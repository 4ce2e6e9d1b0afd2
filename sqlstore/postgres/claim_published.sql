-- $1 settlements as JSON. Returns the ids that were written.
WITH settled AS (
  SELECT * FROM json_to_recordset($1::text::json) AS settled(id bigint, token uuid, published_to text)
), published AS (
  UPDATE {events} e
  SET status = 'PUBLISHED', published_at = now(), published_to = settled.published_to, last_error = NULL,
      claim_token = NULL, processing_until = NULL
  FROM settled
  WHERE e.id = settled.id AND e.status = 'PROCESSING' AND e.claim_token = settled.token
  RETURNING e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version
), versions AS (
  INSERT INTO {versions} AS v (aggregate_type, aggregate_id, version)
  SELECT aggregate_type, aggregate_id, max(aggregate_version)
  FROM published
  WHERE aggregate_version IS NOT NULL
  GROUP BY aggregate_type, aggregate_id
  ORDER BY aggregate_type, aggregate_id
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET version = greatest(v.version, excluded.version), left_at = excluded.left_at
)
SELECT id FROM published;
