
-- The arithmetic of a debt that drains, for token_bucket and leaky_bucket: `refill` units a tick,
-- `token` units a token. The state is when the debt will have drained: T, microseconds since the
-- epoch, and r < refill, units still owed then. Stored as T, or T:r if r > 0.
--
-- Every number is a whole number below 2^53 and so exact. Where a product could reach that, it is
-- only compared with one that cannot. Before a division the remainder is taken off.

-- ticks of `tick` microseconds in which so many units drain, rounded up
local function ticks_for(units, refill)
  local rest = units % refill
  local ticks = (units - rest) / refill
  if rest > 0 then return ticks + 1 end
  return ticks
end

-- T and r of a stored text; of a missing one or any other text, those of a key never seen
local function debt_of(state)
  if not state then return 0, 0 end
  local drained_at, rest = string.match(state, '^%d+$'), 0
  if not drained_at then drained_at, rest = string.match(state, '^(%d+):(%d+)$') end
  drained_at, rest = tonumber(drained_at or 0), tonumber(rest or 0)
  if drained_at < 9007199254740992 and rest < 9007199254740992 then return drained_at, rest end
  return 0, 0
end

-- units owed at a tick, which may be more than the capacity; what is not whole under this limit,
-- since another one wrote it, is rounded up by less than one tick
local function owed_at(now_tick, state, tick, refill)
  local drained_at, rest = debt_of(state)
  local part = drained_at % tick
  local drained_tick = (drained_at - part) / tick
  if part > 0 or rest >= refill then drained_tick, rest = drained_tick + 1, 0 end
  if drained_tick < now_tick then return 0 end
  return (drained_tick - now_tick) * refill + rest
end

-- what is stored where so many units are owed at a tick
local function debt_text(owed, now_tick, tick, refill)
  local rest = owed % refill
  local drained_at = (now_tick + (owed - rest) / refill) * tick
  return rest > 0 and string.format('%.0f:%.0f', drained_at, rest) or drained_at
end

-- one request on a debt; `queue`: it waits for what is owed before it
local function debt(state, at, peek, queue)
  local tick, refill = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local token, capacity = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local price, usable = peek and 0 or tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  local now_tick = (now - now % tick) / tick
  local owed = owed_at(now_tick, state, tick, refill)
  local write = owed > capacity
  if write then owed = capacity end

  local outcome, wait = 1, 0
  if price > usable then
    outcome = 2
  elseif price > 0 and owed > usable - price then
    outcome, wait = 0, (now_tick + ticks_for(owed - (usable - price), refill)) * tick - now
  elseif price > 0 then
    if queue and owed > 0 then
      outcome, wait = 3, (now_tick + ticks_for(owed, refill)) * tick - now
    end
    owed, write = owed + price, true
  end

  local left, reset = capacity - owed, 0
  if owed > 0 then reset = (now_tick + ticks_for(owed, refill)) * tick - now end
  local value = write and debt_text(owed, now_tick, tick, refill)
  return outcome, (left - left % token) / token, wait, reset, value, reset
end
