-- Tries everything that once.lua does with a marker, and leaves one that is gone at once.
-- KEYS: stream, marker.
redis.call('SET', KEYS[2], '', 'PX', 1)
redis.call('PEXPIRE', KEYS[2], 1)
return redis.call('GET', KEYS[2])
