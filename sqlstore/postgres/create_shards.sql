-- $1 relay name, $2 number of shards.
INSERT INTO {shards} (relay_name, shard)
SELECT $1, n FROM generate_series(0, $2::int - 1) AS n
ON CONFLICT DO NOTHING;
