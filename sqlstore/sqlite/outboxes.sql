-- Returns the tables that postrider init has created: those beside which their own side table stands.
SELECT t.name
FROM sqlite_master t
JOIN sqlite_master side ON side.type = 'table' AND side.name = CASE t.name WHEN 'outbox_events' THEN 'outbox' ELSE t.name END || '_schema'
WHERE t.type = 'table'
  AND EXISTS (SELECT 1 FROM pragma_table_info(t.name) c WHERE c.name = 'next_attempt_at')
  AND EXISTS (SELECT 1 FROM pragma_table_info(side.name) c WHERE c.name = 'outbox_table')
ORDER BY t.name;
