-- Returns what is unwise in how the connection was made: message, hint.
SELECT 'plans of prepared statements are kept, also while the table grows',
       'use default_query_exec_mode=cache_describe (pgx) or plan_cache_mode=force_custom_plan'
FROM pg_prepared_statements
WHERE NOT from_sql AND name <> '' AND current_setting('plan_cache_mode') <> 'force_custom_plan'
HAVING count(*) > 0;
