-- Sets how long entries have been idle, of those that are pending for a consumer: what another one has taken over stays its own.
-- KEYS: stream. ARGV: group, consumer, milliseconds, ids. Returns of how many it was set.

local kept = 0
for i = 4, #ARGV do
  if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2]) > 0 then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[3], 'JUSTID')
    kept = kept + 1
  end
end
return kept
