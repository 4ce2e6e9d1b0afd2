-- Returns the indexes of their table: its name, whether it is unique, and its columns, as a JSON array in order; empty for what
-- is no whole column. Behind the columns of an index that is not unique stand those of the primary key.
WITH parts AS (
  SELECT index_name AS name, non_unique = 0 AS is_unique, seq_in_index AS place, CASE WHEN sub_part IS NULL THEN column_name END AS part
  FROM information_schema.statistics
  WHERE table_schema = coalesce(nullif('{their_schema}', ''), database()) AND table_name = '{their_name}'
    /*!80019 AND is_visible = 'YES' */ /*M!100600 AND ignored = 'NO' */
)
SELECT name, is_unique, concat('[', group_concat(json_quote(coalesce(part, '')) ORDER BY place), ']')
FROM (
  SELECT name, is_unique, place, part FROM parts
  UNION ALL
  SELECT other.name, other.is_unique, 100 + own.place, own.part
  FROM parts own
  JOIN (SELECT DISTINCT name, is_unique FROM parts WHERE NOT is_unique) other
  WHERE own.name = 'PRIMARY'
) list
GROUP BY name, is_unique;
