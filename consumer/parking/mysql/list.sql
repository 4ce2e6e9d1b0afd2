-- Parameters: 1 consumer, or empty for all, 2 hash of the key, or empty for all, 3 limit. Returns the parked keys with their first messages,
-- those first that are parked for the longest time.
SELECT k.consumer, k.parked_key,
  date_format(k.parked_at, '%Y-%m-%d %H:%i:%s.%f'), timestampdiff(MICROSECOND, utc_timestamp(6), k.due_at) / 1000000,
  k.claim_token IS NOT NULL, k.attempts, k.class, k.error, k.letter_error, k.first_failed_at, f.id, f.envelope, f.given_up_by, f.given_up_reason,
  (SELECT count(*) FROM {parked} p WHERE p.consumer = k.consumer AND p.key_hash = k.key_hash)
FROM (
  SELECT * FROM {keys} WHERE ? IN ('', consumer) AND ? IN ('', key_hash) ORDER BY parked_at, consumer, key_hash LIMIT ?
) k
JOIN {parked} f ON f.id = (SELECT min(p.id) FROM {parked} p WHERE p.consumer = k.consumer AND p.key_hash = k.key_hash)
ORDER BY k.parked_at, k.consumer, k.key_hash
