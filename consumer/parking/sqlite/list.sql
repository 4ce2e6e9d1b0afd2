-- Parameters: 1 consumer, or empty for all, 2 hash of the key, or empty for all, 3 limit. Returns the parked keys with their first messages,
-- those first that are parked for the longest time.
SELECT k.consumer, k.parked_key,
  k.parked_at, (julianday(k.due_at) - julianday('now')) * 86400.0,
  k.claim_token IS NOT NULL, k.attempts, k.class, k.error, k.letter_error, k.first_failed_at, f.id, f.envelope, f.given_up_by, f.given_up_reason,
  (SELECT count(*) FROM {parked} p WHERE p.consumer = k.consumer AND p.key_hash = k.key_hash)
FROM (
  SELECT * FROM {keys} WHERE ?1 IN ('', consumer) AND ?2 IN ('', key_hash) ORDER BY parked_at, consumer, key_hash LIMIT ?3
) k
JOIN {parked} f ON f.id = (SELECT min(p.id) FROM {parked} p WHERE p.consumer = k.consumer AND p.key_hash = k.key_hash)
ORDER BY k.parked_at, k.consumer, k.key_hash
