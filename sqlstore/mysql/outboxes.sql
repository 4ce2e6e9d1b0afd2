-- Returns the tables in the schema of the side tables that postrider init has created: those beside which their own
-- side table stands.
SELECT t.table_name
FROM information_schema.columns t
JOIN information_schema.columns side ON side.table_schema = t.table_schema AND side.column_name = 'outbox_table'
  AND side.table_name = concat(CASE t.table_name WHEN 'outbox_events' THEN 'outbox' ELSE t.table_name END, '_schema')
WHERE t.table_schema = coalesce(nullif('{database}', ''), database()) AND t.column_name = 'next_attempt_at'
ORDER BY t.table_name;
