-- Parameters: 1 consumer, 2 hashes of keys as JSON. Returns those that are parked.
SELECT key_hash FROM {keys} WHERE consumer = ? AND key_hash IN (SELECT hash FROM JSON_TABLE(?, '$[*]' COLUMNS (hash char(64) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) list)
