-- Returns the columns of their table: name, type, kind of type, whether times have a zone, how many digits of the
-- fractions of a second they have, how many characters fit (0: any number), the highest integer that fits (0: no integer),
-- whether it may be NULL, whether the database gives ascending values, the words of an enumeration as JSON, character
-- set, collation. char(92) is a backslash, whose meaning in a literal depends on sql_mode.
SELECT column_name,
       column_type,
       CASE
         WHEN data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') OR data_type = 'decimal' AND numeric_scale = 0
           OR column_type = 'bit(1)' THEN 'integer'
         WHEN data_type IN ('datetime', 'timestamp') THEN 'time'
         WHEN data_type IN ('char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext') THEN 'text'
         WHEN data_type = 'uuid' OR column_type = 'binary(16)' THEN 'uuid'
         WHEN data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob') THEN 'bytes'
         WHEN data_type IN ('json', 'enum') THEN data_type
         ELSE 'other'
       END,
       data_type = 'timestamp',
       coalesce(datetime_precision, 0),
       CASE WHEN data_type IN ('char', 'varchar') THEN character_maximum_length WHEN data_type = 'tinytext' THEN 63 ELSE 0 END,
       CASE data_type
         WHEN 'tinyint' THEN 127 WHEN 'smallint' THEN 32767 WHEN 'mediumint' THEN 8388607 WHEN 'int' THEN 2147483647
         WHEN 'bigint' THEN 9223372036854775807 ELSE 0 END,
       is_nullable = 'YES',
       extra LIKE '%auto_increment%',
       CASE WHEN data_type = 'enum' THEN concat('["', replace(replace(replace(replace(
         substr(column_type, 7, char_length(column_type) - 8), char(92), concat(char(92), char(92))), '"', concat(char(92), '"')), ''',''', '","'), '''''', ''''), '"]') ELSE '[]' END,
       coalesce(character_set_name, ''),
       coalesce(collation_name, '')
FROM information_schema.columns
WHERE table_schema = coalesce(nullif('{their_schema}', ''), database()) AND table_name = '{their_name}';
