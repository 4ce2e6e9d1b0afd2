-- Parameters: 1 consumer, 2 hash of the key. The key is locked, so that no message can come in between; it rejoins when none is left.
DELETE FROM {keys}
WHERE consumer = $1 AND key_hash = $2
  AND NOT EXISTS (SELECT 1 FROM {parked} p WHERE p.consumer = {keys}.consumer AND p.key_hash = {keys}.key_hash)
