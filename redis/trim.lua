-- Trims a stream to its newest entries, but to none that a group has still to read or to acknowledge.
-- KEYS: stream. ARGV: how many entries to keep, how many to remove at most. Returns how many were removed.

-- Ids are compared as text, because their numbers are larger than those of Lua.
local function less(a, b)
  local amilli, aseq = string.match(a, '^(%d+)-(%d+)$')
  local bmilli, bseq = string.match(b, '^(%d+)-(%d+)$')
  if amilli ~= bmilli then
    aseq, bseq = amilli, bmilli
  end
  if #aseq ~= #bseq then
    return #aseq < #bseq
  end
  return aseq < bseq
end

local function lower(a, b)
  if not a or less(b, a) then
    return b
  end
  return a
end

local length = redis.call('XLEN', KEYS[1])
if length == 0 then
  return 0
end
local oldest -- all groups have read what is before it
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local name
  for i = 1, #group, 2 do
    if group[i] == 'name' then
      name = group[i + 1]
    elseif group[i] == 'last-delivered-id' then
      oldest = lower(oldest, group[i + 1])
    end
  end
  local pending = redis.call('XPENDING', KEYS[1], name)
  if pending[1] > 0 then
    oldest = lower(oldest, pending[2])
  end
end
local excess = math.min(length - tonumber(ARGV[1]), tonumber(ARGV[2]))
if not oldest or excess <= 0 then
  return 0
end
return redis.call('XTRIM', KEYS[1], 'MINID', '~', oldest, 'LIMIT', excess)
