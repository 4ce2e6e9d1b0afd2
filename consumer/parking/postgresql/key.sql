-- Parameters: 1 consumer, 2 hash of the key, 3 claim token.
SELECT parked_key, attempts, class, error, letter_error, first_failed_at FROM {keys} WHERE consumer = $1 AND key_hash = $2 AND claim_token = $3
