-- Parameters: 1 consumer, 2 limit. Returns the parked keys, those first that are parked for the longest time.
SELECT k.parked_key, k.parked_at, (julianday(k.due_at) - julianday('now')) * 86400.0, k.claim_token IS NOT NULL, k.attempts, k.class, k.error, k.first_failed_at,
  (SELECT count(*) FROM {parked} p WHERE p.consumer = k.consumer AND p.key_hash = k.key_hash)
FROM {keys} k
WHERE k.consumer = ?1
ORDER BY k.parked_at, k.key_hash
LIMIT ?2
