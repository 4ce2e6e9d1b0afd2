-- Returns the names of the indexes of the tables.
SELECT name FROM sqlite_master WHERE type = 'index' AND '"' || tbl_name || '"' IN ('{events}', '{holds}', '{attempts}', '{jobs}');
