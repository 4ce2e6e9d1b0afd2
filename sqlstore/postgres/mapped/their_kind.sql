-- Returns what their table is: table, partitioned table, or what is no table.
SELECT CASE relkind
         WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
         WHEN 'f' THEN 'foreign table' ELSE relkind::text END
FROM pg_class
WHERE oid = to_regclass('{theirs}');
