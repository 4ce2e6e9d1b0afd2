-- Parameters: 1 consumer, 2 hash of the key. Locks it; no row: it is not parked.
UPDATE {keys} SET revision = revision + 1 WHERE consumer = $1 AND key_hash = $2
