-- ?1 relay name, ?2 number of shards.
INSERT OR IGNORE INTO {shards} (relay_name, shard)
WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?2)
SELECT ?1, n FROM numbers;
