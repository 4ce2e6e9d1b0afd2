-- Returns the columns of their table: name, type, kind of type, whether times have a zone, how many digits of
-- the fractions of a second they have, how many characters fit (0: any number), the highest integer that fits (0: no integer), whether it may be NULL,
-- whether the database gives ascending values, the words of an enumeration as JSON,
-- character set, collation.
SELECT a.attname,
       format_type(a.atttypid, a.atttypmod),
       CASE
         WHEN b.typname IN ('int2', 'int4', 'int8', 'numeric') THEN 'integer'
         WHEN b.typname IN ('timestamp', 'timestamptz') THEN 'time'
         WHEN b.typname = 'bool' THEN 'boolean'
         WHEN b.typname = 'bytea' THEN 'bytes'
         WHEN b.typname IN ('json', 'jsonb', 'uuid') THEN b.typname
         WHEN b.typtype = 'e' THEN 'enum'
         WHEN b.typcategory = 'S' THEN 'text'
         ELSE 'other'
       END,
       b.typname = 'timestamptz',
       CASE WHEN b.typname NOT IN ('timestamp', 'timestamptz') THEN 0 WHEN m.typmod < 0 THEN 6 ELSE m.typmod END,
       CASE WHEN b.typname IN ('varchar', 'bpchar') AND m.typmod > 4 THEN m.typmod - 4 ELSE 0 END,
       CASE b.typname WHEN 'int2' THEN 32767 WHEN 'int4' THEN 2147483647 WHEN 'int8' THEN 9223372036854775807 ELSE 0 END,
       NOT a.attnotnull,
       a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false),
       coalesce((SELECT json_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = b.oid), '[]'),
       '', ''
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
CROSS JOIN LATERAL (SELECT CASE t.typtype WHEN 'd' THEN t.typtypmod ELSE a.atttypmod END AS typmod) m
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = to_regclass('{theirs}') AND a.attnum > 0 AND NOT a.attisdropped;
