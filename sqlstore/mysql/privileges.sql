-- Returns what the user of this connection may not do: subject, table, what to grant on, privileges, user to grant to, whether
-- the table is there for certain: none is shown to a user who may do nothing with it. What a role may do cannot be seen from
-- here, so a user with a role passes.
WITH needed AS (
  SELECT tbl, privilege, coalesce(nullif('{database}', ''), database()) AS db
  FROM JSON_TABLE('[
    ["{events_name}", "SELECT"],
    ["{events_name}", "UPDATE"],
    ["{events_name}", "DELETE"],
    ["{side}_shards", "SELECT"],
    ["{side}_shards", "INSERT"],
    ["{side}_shards", "UPDATE"],
    ["{side}_relays", "SELECT"],
    ["{side}_relays", "INSERT"],
    ["{side}_relays", "UPDATE"],
    ["{side}_relays", "DELETE"],
    ["{side}_holds", "SELECT"],
    ["{side}_holds", "INSERT"],
    ["{side}_holds", "UPDATE"],
    ["{side}_holds", "DELETE"],
    ["{side}_versions", "SELECT"],
    ["{side}_versions", "INSERT"],
    ["{side}_versions", "UPDATE"],
    ["{side}_attempts", "SELECT"],
    ["{side}_attempts", "INSERT"],
    ["{side}_attempts", "DELETE"],
    ["{side}_jobs", "SELECT"],
    ["{side}_jobs", "INSERT"],
    ["{side}_jobs", "UPDATE"],
    ["{side}_jobs", "DELETE"],
    ["{side}_job_events", "SELECT"],
    ["{side}_job_events", "INSERT"],
    ["{side}_job_events", "DELETE"],
    ["{side}_schema", "SELECT"]
  ]', '$[*]' COLUMNS (tbl varchar(64) CHARACTER SET utf8mb4 PATH '$[0]', privilege varchar(64) CHARACTER SET utf8mb4 PATH '$[1]')) list
), account AS (
  SELECT substring_index(current_user(), '@', -1) AS host, left(current_user(), char_length(current_user()) - locate('@', reverse(current_user()))) AS name
), me AS (
  SELECT concat('''', name, '''@''', host, '''') AS grantee, concat('''', replace(name, '''', ''''''), '''@''', host, '''') AS account FROM account
)
SELECT concat('table ', needed.db, '.', needed.tbl), needed.tbl, concat('`', needed.db, '`.`', needed.tbl, '`'),
       group_concat(needed.privilege ORDER BY field(needed.privilege, 'SELECT', 'INSERT', 'UPDATE', 'DELETE') SEPARATOR ', '), me.account,
       EXISTS (SELECT 1 FROM information_schema.tables t WHERE t.table_schema = needed.db AND t.table_name = needed.tbl)
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
    WHERE p.grantee = me.grantee AND p.privilege_type = needed.privilege AND p.table_schema = needed.db AND p.table_name = needed.tbl)
GROUP BY needed.db, needed.tbl, me.account
ORDER BY needed.db, needed.tbl;
