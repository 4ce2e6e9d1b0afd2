-- Returns what is unwise in how the connection was made: message, hint.
SELECT 'readers and writers keep each other waiting', 'open the database with PRAGMA journal_mode = WAL'
FROM pragma_journal_mode WHERE journal_mode <> 'wal'
UNION ALL
SELECT 'a commit can be lost when the machine loses power', 'open the database with PRAGMA synchronous = FULL'
FROM pragma_synchronous WHERE synchronous < 2
UNION ALL
SELECT 'writers fail when they meet each other', 'open the database with PRAGMA busy_timeout = 10000'
FROM pragma_busy_timeout WHERE timeout = 0;
