-- Returns what the user of this connection may not do: privilege, table. What a role may do cannot be seen from here, so a
-- user with a role passes.
WITH needed AS (
  SELECT tbl, privilege, coalesce(nullif('{their_schema}', ''), database()) AS db
  FROM (SELECT '{their_name}' AS tbl, 'SELECT' AS privilege UNION SELECT '{their_name}', 'UPDATE' UNION SELECT '{their_name}', 'DELETE') theirs
  WHERE ('{theirs}', privilege) IN ({needed_privileges})
  UNION ALL
  SELECT tbl, privilege, coalesce(nullif('{database}', ''), database())
  FROM JSON_TABLE('[
    ["{side}_failures", "SELECT"],
    ["{side}_failures", "INSERT"],
    ["{side}_failures", "UPDATE"],
    ["{side}_failures", "DELETE"],
    ["{side}_shards", "SELECT"],
    ["{side}_shards", "INSERT"],
    ["{side}_shards", "UPDATE"],
    ["{side}_relays", "SELECT"],
    ["{side}_relays", "INSERT"],
    ["{side}_relays", "UPDATE"],
    ["{side}_relays", "DELETE"],
    ["{side}_versions", "SELECT"],
    ["{side}_versions", "INSERT"],
    ["{side}_versions", "UPDATE"],
    ["{side}_attempts", "SELECT"],
    ["{side}_attempts", "INSERT"],
    ["{side}_attempts", "DELETE"],
    ["{side}_schema", "SELECT"]
  ]', '$[*]' COLUMNS (tbl varchar(64) CHARACTER SET utf8mb4 PATH '$[0]', privilege varchar(64) CHARACTER SET utf8mb4 PATH '$[1]')) list
), me AS (
  SELECT concat('''', substring_index(current_user(), '@', 1), '''@''', substring_index(current_user(), '@', -1), '''') AS grantee
)
SELECT needed.privilege, needed.tbl
FROM needed, me
WHERE coalesce(current_role(), 'NONE') = 'NONE'
  AND NOT EXISTS (
    SELECT 1 FROM information_schema.user_privileges p
    WHERE p.grantee = me.grantee AND p.privilege_type = needed.privilege)
  AND NOT EXISTS (
    SELECT 1 FROM information_schema.schema_privileges p
    WHERE p.grantee = me.grantee AND p.privilege_type = needed.privilege AND needed.db LIKE p.table_schema)
  AND NOT EXISTS (
    SELECT 1 FROM information_schema.table_privileges p
    WHERE p.grantee = me.grantee AND p.privilege_type = needed.privilege AND p.table_schema = needed.db AND p.table_name = needed.tbl);
