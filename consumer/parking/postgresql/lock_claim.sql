-- Parameters: 1 consumer, 2 hash of the key, 3 claim token. Locks it; no row: the claim was lost.
UPDATE {keys} SET revision = revision + 1 WHERE consumer = $1 AND key_hash = $2 AND claim_token = $3
