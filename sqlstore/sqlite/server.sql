SELECT 'SQLite ' || sqlite_version(), true, '';
