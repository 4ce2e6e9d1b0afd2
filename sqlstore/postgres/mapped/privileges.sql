-- Returns what the user of this connection may not do: subject, table or empty, what to grant on, privileges, user to grant to,
-- whether the table is there for certain. It asks the catalog, which everybody may read; to_regclass fails for a table in a
-- closed schema.
WITH needed(tbl, privilege) AS (VALUES
  {needed_privileges},
  ('{failures}', 'SELECT'), ('{failures}', 'INSERT'), ('{failures}', 'UPDATE'), ('{failures}', 'DELETE'),
  ('{shards}', 'SELECT'), ('{shards}', 'INSERT'), ('{shards}', 'UPDATE'),
  ('{relays}', 'SELECT'), ('{relays}', 'INSERT'), ('{relays}', 'UPDATE'), ('{relays}', 'DELETE'),
  ('{attempts}', 'SELECT'), ('{attempts}', 'INSERT'), ('{attempts}', 'DELETE'),
  ('{holds}', 'SELECT'), ('{holds}', 'INSERT'), ('{holds}', 'UPDATE'), ('{holds}', 'DELETE'),
  ('{versions}', 'SELECT'), ('{versions}', 'INSERT'), ('{versions}', 'UPDATE'),
  ('{jobs}', 'SELECT'), ('{jobs}', 'INSERT'), ('{jobs}', 'UPDATE'), ('{jobs}', 'DELETE'),
  ('{job_events}', 'SELECT'), ('{job_events}', 'INSERT'), ('{job_events}', 'DELETE'),
  ('{schema}', 'SELECT')
), named AS (
  SELECT DISTINCT tbl, parse_ident(tbl) AS name FROM needed
), path AS (
  SELECT CASE entry WHEN '$user' THEN current_user::text ELSE entry END AS schema, place
  FROM (
    SELECT trim(BOTH ' "' FROM part) AS entry, place
    FROM unnest(string_to_array(current_setting('search_path'), ',')) WITH ORDINALITY AS list(part, place)
  ) entries
), found AS (
  SELECT DISTINCT ON (tbl) tbl, nspname, relname, c.oid, has_schema_privilege(n.oid, 'USAGE') AS is_open
  FROM named
  CROSS JOIN pg_namespace n
  LEFT JOIN path ON path.schema = nspname
  LEFT JOIN pg_class c ON c.relnamespace = n.oid AND relname = name[cardinality(name)]
  WHERE CASE cardinality(name) WHEN 1 THEN place IS NOT NULL AND relname IS NOT NULL ELSE nspname = name[1] END
  ORDER BY tbl, is_open DESC, place
), me AS (
  SELECT '"' || replace(current_user, '"', '""') || '"' AS name
)
SELECT DISTINCT 'schema ' || nspname, '', 'SCHEMA ' || quote_ident(nspname), 'USAGE', me.name, true
FROM found, me
WHERE NOT is_open
UNION ALL
SELECT 'table ' || nspname || '.' || relname, relname, format('%I.%I', nspname, relname),
       string_agg(privilege, ', ' ORDER BY array_position(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'], privilege)), me.name, true
FROM needed JOIN found USING (tbl), me
WHERE NOT has_table_privilege(oid, privilege)
GROUP BY nspname, relname, me.name;
