-- SQLite knows no users.
SELECT '', '', '', '', '', true WHERE false;
