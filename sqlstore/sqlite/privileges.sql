-- SQLite knows no users.
SELECT '', '' WHERE false;
