
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
-- Reply outcome, remaining, wait, reset: as for the token bucket
-- TTL   reset in milliseconds, rounded up: a full bucket and no bucket are the same
--
-- A refusal writes nothing, unless the state owes more than the capacity: then the clock went back
-- or the limit was changed, and the bucket counts as empty now. Why a script: between the read and
-- the write of one request nobody else may read.
local token, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local price = ARGV[3] and tonumber(ARGV[3]) or token
local usable = ARGV[4] and tonumber(ARGV[4]) or capacity
local state = redis.call('GET', KEYS[1])
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

local outcome, wait = 1, 0
if price > usable then
  outcome = 2
elseif price > 0 then
  local excess = owed - (usable - price)
  if excess > 0 then
    outcome, wait = 0, excess
  else
    owed, write = owed + price, true
  end
end
-- Redis writes a whole number as its digits
if write then
  redis.call('SET', KEYS[1], now + owed, 'PX', (owed + (1000 - owed % 1000) % 1000) / 1000)
end
local left = capacity - owed
return { outcome, (left - left % token) / token, wait, owed }
