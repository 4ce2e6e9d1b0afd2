-- Parameters: 1 consumer, 2 hash of the key, 3 claim token.
SELECT parked_key, attempts, class, error, letter_error, first_failed_at FROM {keys} WHERE consumer = ? AND key_hash = ? AND claim_token = ?
