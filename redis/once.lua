-- Writes an entry unless its marker says that it was written, and returns its id. A repetition renews the marker.
-- KEYS: stream, marker. ARGV: how long the marker lasts in milliseconds, then names and values of fields.
local id = redis.call('GET', KEYS[2])
if id then
  redis.call('PEXPIRE', KEYS[2], ARGV[1])
  return id
end
id = redis.call('XADD', KEYS[1], '*', unpack(ARGV, 2))
redis.call('SET', KEYS[2], id, 'PX', ARGV[1])
return id
