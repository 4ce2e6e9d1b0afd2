-- Returns what their table is: table, partitioned table, or what is no table.
SELECT CASE
         WHEN table_type LIKE '%VIEW' THEN 'view'
         WHEN create_options LIKE '%partitioned%' THEN 'partitioned table'
         ELSE 'table' END
FROM information_schema.tables
WHERE table_schema = coalesce(nullif('{their_schema}', ''), database()) AND table_name = '{their_name}';
