-- Parameters: 1 seconds until the next try, 2 attempts, 3 class, 4 error, 5 first failure, 6 consumer, 7 hash of the key. The key is locked.
UPDATE {keys}
SET claim_token = NULL, due_at = utc_timestamp(6) + INTERVAL round(? * 1000000) MICROSECOND, attempts = ?, class = ?, error = ?, first_failed_at = ?
WHERE consumer = ? AND key_hash = ?
