-- $1 settlements as JSON. Returns the ids that were written.
WITH settled AS (
  SELECT * FROM json_to_recordset($1::text::json) AS settled(id text, token text, published_to text)
), published AS (
  UPDATE {theirs} postrider_theirs
  SET {set_claim_published}
  FROM (SELECT s.id AS postrider_id, s.token AS postrider_token, s.published_to AS postrider_published_to FROM settled s) postrider_settled
  WHERE postrider_theirs.{id} = postrider_id::{id_type} AND {row_is_claimed} AND {token_of_row} = postrider_token
  RETURNING postrider_id AS id, {type_of_row} AS aggregate_type, {aggregate_of_row} AS aggregate_id, {version_of_row} AS aggregate_version
), versions AS (
  INSERT INTO {versions} AS v (aggregate_type, aggregate_id, version)
  SELECT aggregate_type, aggregate_id, max(aggregate_version)
  FROM published
  WHERE aggregate_version IS NOT NULL
  GROUP BY aggregate_type, aggregate_id
  ORDER BY aggregate_type, aggregate_id
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET version = greatest(v.version, excluded.version), left_at = excluded.left_at
), recovered AS (
  DELETE FROM {failures} f WHERE f.event = ANY (ARRAY(SELECT id FROM published))
)
SELECT id FROM published;
