-- Returns what is unwise in how the server is set up or the connection was made: message, hint.
WITH settings AS (
  SELECT lower(variable_name) AS name, variable_value AS value
  FROM /*!80019 performance_schema.global_variables */ /*M!100600 information_schema.global_variables */
  WHERE variable_name IN ('innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'binlog_format')
)
SELECT 'a commit can be lost when the server stops', 'set innodb_flush_log_at_trx_commit = 1 on the server'
FROM settings WHERE name = 'innodb_flush_log_at_trx_commit' AND value <> '1'
UNION ALL
SELECT 'a commit can be missing from the binary log when the machine loses power', 'set sync_binlog = 1 on the server'
FROM settings binlog JOIN settings sync ON sync.name = 'sync_binlog'
WHERE binlog.name = 'log_bin' AND binlog.value IN ('ON', '1') AND sync.value <> '1'
UNION ALL
SELECT 'the binary log takes no statement of a relay, which works in READ COMMITTED', 'set binlog_format = ROW on the server'
FROM settings WHERE name = 'binlog_format' AND value = 'STATEMENT'
UNION ALL
SELECT 'values that do not fit are cut instead of refused', 'add STRICT_TRANS_TABLES to sql_mode'
FROM (SELECT 1) one WHERE @@sql_mode NOT LIKE '%STRICT_TRANS_TABLES%' AND @@sql_mode NOT LIKE '%STRICT_ALL_TABLES%';
