-- A part of oldest.sql: the first rows with one of the words that wait.
(SELECT e.id FROM {rows_walk} e WHERE {pending_word} ORDER BY {row_order} LIMIT 2000);
