-- Parameters: 1 consumer, 2 hash of the key, 3 limit. Returns its first messages, in order.
SELECT id, envelope, payload, given_up_by, given_up_reason FROM {parked} WHERE consumer = ?1 AND key_hash = ?2 ORDER BY id LIMIT ?3
