-- :1 relay name, or empty for all. Returns how many shards there are, are owned, free, and expired.
SELECT count(*), count(CASE WHEN lease_until > utc_timestamp(6) THEN 1 END), count(CASE WHEN owner IS NULL THEN 1 END),
       count(CASE WHEN lease_until <= utc_timestamp(6) THEN 1 END)
FROM {shards}
WHERE :1 IN ('', relay_name);
