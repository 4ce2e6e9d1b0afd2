-- Parameters: 1 consumer, 2 hash of the key, 3 id of the last message that is done with. The key is locked.
DELETE FROM {parked} WHERE consumer = ? AND key_hash = ? AND id <= ?
