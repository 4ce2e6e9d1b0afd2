-- Removes from a group the consumers that have nothing pending and were silent for long. One that lives after all comes back by
-- reading. KEYS: stream. ARGV: group, milliseconds, the only consumer to look at or ''. Returns how many were removed.

local removed = 0
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local has = {}
  for i = 1, #consumer, 2 do
    has[consumer[i]] = consumer[i + 1]
  end
  if has.pending == 0 and has.idle >= tonumber(ARGV[2]) and (ARGV[3] == '' or ARGV[3] == has.name) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], has.name)
    removed = removed + 1
  end
end
return removed
