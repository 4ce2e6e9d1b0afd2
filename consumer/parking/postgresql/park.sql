-- Parameters: 1 consumer, 2 hash of the key, 3 key, 4 seconds until the next try, 5 attempts, 6 class, 7 error, 8 first failure. Locks the key,
-- and leaves what is known of one that is parked already.
INSERT INTO {keys} (consumer, key_hash, parked_key, due_at, attempts, class, error, first_failed_at)
VALUES ($1, $2, $3, now() + $4::float8 * interval '1 second', $5, $6, $7, $8)
ON CONFLICT (consumer, key_hash) DO UPDATE SET revision = {keys}.revision + 1
