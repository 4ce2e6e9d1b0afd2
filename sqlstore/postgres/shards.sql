-- $1 relay name, or empty for all. Returns how many shards there are, are owned, free, and expired.
SELECT count(*), count(*) FILTER (WHERE lease_until > now()), count(*) FILTER (WHERE owner IS NULL),
       count(*) FILTER (WHERE lease_until <= now())
FROM {shards}
WHERE $1 IN ('', relay_name);
