
-- Token bucket (and GCRA) of any rate that is counted by the microsecond: decides and stores as
-- token_bucket does where tick is 1, in less time.
--
-- KEYS  the bucket
-- ARGV  1 refill: units that a microsecond brings
--       2 capacity: units of a full bucket
--       3 price: units the request takes, 4 usable: units it may draw down from (the capacity less
--       what is reserved)
-- Reply one number, from which the caller knows the rest: units owed after the charge if it passes;
--       -1 less the units owed if it does not
-- TTL   until the bucket is full, in milliseconds, rounded up: a full bucket and no bucket are the
--       same
--
-- A refusal writes nothing, unless the state owes more than the capacity: then the clock went back
-- or the limit was changed, and the bucket counts as empty now. Why a script: between the read and
-- the write of one request nobody else may read.
local call, format = redis.call, string.format
local key, refill, capacity = KEYS[1], ARGV[1] + 0, ARGV[2] + 0
local price, usable = ARGV[3] + 0, ARGV[4] + 0
local state = call('GET', key)
local owed, write = 0, false
if state then
  local full_at, rest = string.match(state, '^(%d+):?(%d*)$')
  if full_at then
    full_at, rest = full_at + 0, rest == '' and 0 or rest + 0
    -- a remainder that this rate does not know, since another limit has left it, is rounded up
    if rest >= refill and rest < 9007199254740992 then full_at, rest = full_at + 1, 0 end
    if full_at >= now and full_at < 9007199254740992 and rest < refill then
      owed = (full_at - now) * refill + rest
      if owed > capacity then owed, write = capacity, true end
    end
  end
end

local passes = price == 0 or owed <= usable - price
if passes and price > 0 then owed, write = owed + price, true end
if write then
  local rest = owed % refill
  local ticks = (owed - rest) / refill
  if rest > 0 then
    local up = ticks + 1000
    call('SET', key, format('%d:%d', now + ticks, rest), 'PX', format('%d', (up - up % 1000) / 1000))
  else
    local up = ticks + 999
    call('SET', key, format('%d', now + ticks), 'PX', format('%d', (up - up % 1000) / 1000))
  end
end
return passes and owed or -1 - owed
