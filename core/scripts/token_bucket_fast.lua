
-- Token bucket (and GCRA) at one unit a microsecond, as for 10/second, 5/minute or 1000/minute:
-- decides and stores as token_bucket does where tick and refill are 1, in less time. The state is
-- one whole number, which Redis keeps without a string.
--
-- KEYS  the bucket
-- ARGV  1 token: units (microseconds) that make a token
--       2 capacity: units of a full bucket
--       3 price: units the request takes; a token if left out
--       4 usable: units it may draw down from (the capacity less what is reserved); the capacity if
--       left out
-- Reply one number, from which the caller knows the rest: units owed after the charge if it passes;
--       -1 less the units owed if it does not
-- TTL   until the bucket is full, in milliseconds, rounded up: a full bucket and no bucket are the
--       same
--
-- A refusal writes nothing, unless the state owes more than the capacity: then the clock went back
-- or the limit was changed, and the bucket counts as empty now. Why a script: between the read and
-- the write of one request nobody else may read.
local call, format = redis.call, string.format
local key, token, capacity = KEYS[1], ARGV[1] + 0, ARGV[2] + 0
local price = ARGV[3] and ARGV[3] + 0 or token
local usable = ARGV[4] and ARGV[4] + 0 or capacity
local state = call('GET', key)
local owed, write = 0, false
if state then
  local full_at = tonumber(state)
  if not full_at then
    -- a remainder, which another limit has left, is rounded up
    local rest
    full_at, rest = string.match(state, '^(%d+):(%d+)$')
    full_at = full_at and tonumber(rest) < 9007199254740992 and full_at + 1
  end
  if full_at and full_at > now and full_at < 9007199254740992 and full_at % 1 == 0 then
    owed = full_at - now
    if owed > capacity then owed, write = capacity, true end
  end
end

local passes = price == 0 or owed + price <= usable
if passes and price > 0 then owed, write = owed + price, true end
if write then
  local up = owed + 999
  call('SET', key, format('%d', now + owed), 'PX', format('%d', (up - up % 1000) / 1000))
end
return passes and owed or -1 - owed
