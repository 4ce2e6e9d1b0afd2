-- Returns the indexes of their table that hold every row: its name, whether it is unique, and its columns, as a JSON array in order.
SELECT i.indexrelid::regclass::text,
       i.indisunique,
       json_agg(coalesce(a.attname, '') ORDER BY k.place)
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k(column_number, place)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.column_number
WHERE i.indrelid = to_regclass('{theirs}') AND i.indisvalid AND i.indpred IS NULL AND k.place <= i.indnkeyatts
GROUP BY i.indexrelid, i.indisunique;
