-- Like claim_published.sql, for outboxes that do not keep published events.
WITH settled AS (
  SELECT * FROM json_to_recordset($1::text::json) AS settled(id bigint, token uuid)
), deleted AS (
  DELETE FROM {events} e
  USING settled
  WHERE e.id = settled.id AND e.status = 'PROCESSING' AND e.claim_token = settled.token
  RETURNING e.id, e.aggregate_type, e.aggregate_id, e.aggregate_version
), versions AS (
  INSERT INTO {versions} AS v (aggregate_type, aggregate_id, version)
  SELECT aggregate_type, aggregate_id, max(aggregate_version)
  FROM deleted
  WHERE aggregate_version IS NOT NULL
  GROUP BY aggregate_type, aggregate_id
  ORDER BY aggregate_type, aggregate_id
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET version = greatest(v.version, excluded.version), left_at = excluded.left_at
), forgotten AS (
  DELETE FROM {attempts} a WHERE a.event = ANY (ARRAY(SELECT id FROM deleted))
)
SELECT id FROM deleted;
