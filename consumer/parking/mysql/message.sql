-- Parameters: 1 id of a message.
SELECT consumer, key_hash, envelope FROM {parked} WHERE id = ?
