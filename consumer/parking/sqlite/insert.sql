-- Parameters: 1 consumer, 2 hash of the key, 3 hash of the source or null, 4 envelope, 5 payload. Its key is locked.
INSERT INTO {parked} (consumer, key_hash, source_hash, envelope, payload) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (consumer, key_hash, source_hash) DO NOTHING
