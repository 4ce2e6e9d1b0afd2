-- $1 time zone. Returns whether the server knows it. Offsets are written as intervals, which need no name.
SELECT CASE WHEN $1::text = 'UTC' OR $1 LIKE '%:%' THEN true ELSE EXISTS (
  SELECT FROM pg_timezone_names WHERE lower(name) = lower($1)
  UNION ALL
  SELECT FROM pg_timezone_abbrevs WHERE lower(abbrev) = lower($1)
) END;
