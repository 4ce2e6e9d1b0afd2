-- Parameters: 1 consumer, 2 hash of the key, 3 claim token. Locks it; no row: the claim was lost.
UPDATE {keys} SET revision = revision + 1 WHERE consumer = ? AND key_hash = ? AND claim_token = ?
