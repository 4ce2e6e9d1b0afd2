-- :1 time zone. Returns whether the server knows it.
SELECT :1 = 'UTC' OR convert_tz(utc_timestamp(), :1, '+00:00') IS NOT NULL;
