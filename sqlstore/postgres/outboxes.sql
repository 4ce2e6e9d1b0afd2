-- Returns the tables in the schema of the side tables that postrider init has created: those beside which their own
-- side table stands.
SELECT t.relname
FROM pg_class own
JOIN pg_class t ON t.relnamespace = own.relnamespace AND t.relkind IN ('r', 'p')
JOIN pg_attribute due ON due.attrelid = t.oid AND due.attname = 'next_attempt_at'
JOIN pg_class side ON side.relnamespace = own.relnamespace
  AND side.relname = CASE t.relname WHEN 'outbox_events' THEN 'outbox' ELSE t.relname END || '_schema'
JOIN pg_attribute recorded ON recorded.attrelid = side.oid AND recorded.attname = 'outbox_table'
WHERE own.oid = to_regclass('{schema}')
ORDER BY t.relname COLLATE "C";
