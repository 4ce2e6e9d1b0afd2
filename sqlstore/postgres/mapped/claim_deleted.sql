-- Like claim_published.sql, for outboxes that do not keep published events.
WITH settled AS (
  SELECT * FROM json_to_recordset($1::text::json) AS settled(id text, token text)
), deleted AS (
  DELETE FROM {theirs} postrider_theirs
  USING (SELECT s.id AS postrider_id, s.token AS postrider_token FROM settled s) postrider_settled
  WHERE postrider_theirs.{id} = postrider_id::{id_type} AND {row_is_claimed} AND {token_of_row} = postrider_token
  RETURNING postrider_id AS id, {type_of_row} AS aggregate_type, {aggregate_of_row} AS aggregate_id, {version_of_row} AS aggregate_version
), versions AS (
  INSERT INTO {versions} AS v (aggregate_type, aggregate_id, version)
  SELECT aggregate_type, aggregate_id, max(aggregate_version)
  FROM deleted
  WHERE aggregate_version IS NOT NULL
  GROUP BY aggregate_type, aggregate_id
  ORDER BY aggregate_type, aggregate_id
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET version = greatest(v.version, excluded.version), left_at = excluded.left_at
), recovered AS (
  DELETE FROM {failures} f WHERE f.event = ANY (ARRAY(SELECT id FROM deleted))
), forgotten AS (
  DELETE FROM {attempts} a WHERE a.event = ANY (ARRAY(SELECT id FROM deleted))
)
SELECT id FROM deleted;
