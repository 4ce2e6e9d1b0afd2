-- Parameters: 1 seconds until the next try, 2 attempts, 3 class, 4 error, 5 error of its dead letter, 6 first failure, 7 consumer, 8 hash of the key.
-- The key is locked. The next try is due at once when somebody has asked for it since the claim.
UPDATE {keys}
SET claim_token = NULL, due_at = utc_timestamp(6) + INTERVAL round(CASE WHEN asked THEN 0 ELSE ? END * 1000000) MICROSECOND,
  attempts = ?, class = ?, error = ?, letter_error = ?, first_failed_at = ?
WHERE consumer = ? AND key_hash = ?
