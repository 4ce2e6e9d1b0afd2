-- Parameters: 1 claim token, 2 seconds of the lease, 3 consumer, 4 hash of the key. No row: another one was faster.
UPDATE {keys} SET claim_token = ?, due_at = utc_timestamp(6) + INTERVAL round(? * 1000000) MICROSECOND, asked = false, revision = revision + 1
WHERE consumer = ? AND key_hash = ? AND due_at <= utc_timestamp(6)
