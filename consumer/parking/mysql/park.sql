-- Parameters: 1 consumer, 2 hash of the key, 3 key, 4 seconds until the next try, 5 attempts, 6 class, 7 error, 8 first failure. Locks the key,
-- and leaves what is known of one that is parked already.
INSERT INTO {keys} (consumer, key_hash, parked_key, due_at, attempts, class, error, first_failed_at)
VALUES (?, ?, ?, utc_timestamp(6) + INTERVAL round(? * 1000000) MICROSECOND, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE revision = revision + 1
