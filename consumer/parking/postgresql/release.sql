-- Parameters: 1 seconds until the next try, 2 attempts, 3 class, 4 error, 5 error of its dead letter, 6 first failure, 7 consumer, 8 hash of the key.
-- The key is locked. The next try is due at once when somebody has asked for it since the claim.
UPDATE {keys}
SET claim_token = NULL, due_at = now() + CASE WHEN asked THEN 0 ELSE $1::float8 END * interval '1 second',
  attempts = $2, class = $3, error = $4, letter_error = $5, first_failed_at = $6
WHERE consumer = $7 AND key_hash = $8
