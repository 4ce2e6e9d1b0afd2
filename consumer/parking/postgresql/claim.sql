-- Parameters: 1 claim token, 2 seconds of the lease, 3 consumer, 4 hash of the key. No row: another one was faster.
UPDATE {keys} SET claim_token = $1, due_at = now() + $2::float8 * interval '1 second', asked = false, revision = revision + 1
WHERE consumer = $3 AND key_hash = $4 AND due_at <= now()
