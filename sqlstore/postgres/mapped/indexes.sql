-- Returns the names of the indexes of the side tables that can be used.
SELECT c.relname
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid IN (to_regclass('{failures}'), to_regclass('{attempts}'), to_regclass('{jobs}')) AND i.indisvalid;
