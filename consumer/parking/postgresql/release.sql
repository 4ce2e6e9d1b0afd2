-- Parameters: 1 seconds until the next try, 2 attempts, 3 class, 4 error, 5 first failure, 6 consumer, 7 hash of the key. The key is locked.
UPDATE {keys}
SET claim_token = NULL, due_at = now() + $1::float8 * interval '1 second', attempts = $2, class = $3, error = $4, first_failed_at = $5
WHERE consumer = $6 AND key_hash = $7
