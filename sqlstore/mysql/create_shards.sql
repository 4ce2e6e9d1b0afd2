-- :1 relay name, :2 number of shards.
INSERT INTO {shards} (relay_name, shard)
SELECT :1, n - 1 FROM JSON_TABLE(concat('[0', repeat(',0', :2 - 1), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) numbers
ON DUPLICATE KEY UPDATE {shards}.shard = {shards}.shard;
