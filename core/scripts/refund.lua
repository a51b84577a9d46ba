-- Gives back what one request was charged by limits of any algorithms, after a limit on another slot
-- has refused it: the cost less what has come back of it since, as the core's refund does. All of
-- it would let more pass than a limit: a bucket of 10 that fills by 1 a second, charged with 1, is
-- full but for 0.9 after 0.1 s; 9 more are taken, and with 1 back there is room for 1.1.
--
-- KEYS  one for each limit that was charged, no two the same, all in one slot of a cluster
-- ARGV  1 charged: when, in microseconds since the epoch by this Redis, as general replies it
--       and then for each limit in the order of KEYS its letter and its ARGV, as for general
-- Reply for each limit: 1 if something was given back, 0 if nothing was left to give: it has come
--       back already, or the key is gone or was written by another limit
-- TTL   each key's own; a key of which nothing is taken any more is deleted
--
-- Where nothing is given back nothing is written. A debt and a window do not know whose their
-- tokens are, so this is to be called once for a charge, and not for a request that was refused. A
-- clock that went back is no time passed. Why a script: what is left is read and written in one.
-- Every key is read before one is written, so an error leaves all as it was.

-- each of these: the text to store, nil to write nothing, and microseconds until it is idle

local function refund_debt(state, at, charged)
  local tick, refill = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local capacity, price = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local now_tick, charged_tick = (now - now % tick) / tick, (charged - charged % tick) / tick
  local left = price - math.max(now_tick - charged_tick, 0) * refill
  local owed = math.min(owed_at(now_tick, state, tick, refill), capacity)
  if left <= 0 or owed == 0 then return nil end
  owed = math.max(owed - left, 0)
  local idle = 0
  if owed > 0 then idle = (now_tick + ticks_for(owed, refill)) * tick - now end
  return debt_text(owed, now_tick, tick, refill), idle
end

-- a charge of an earlier window has come back with that window
local function refund_fixed_window(state, at, charged)
  local length, limit = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local start, _, counted = window_of(state)
  local _, taken, elapsed = window_at(start, 0, counted, 1, length, now)
  local left = math.min(taken, limit) - tonumber(ARGV[at + 3])
  if charged > now or charged < now - elapsed or left < 0 then return nil end
  local idle = 0
  if left > 0 then
    idle = length - elapsed
    if (now - elapsed) % length > 0 then idle = idle + length end
  end
  return string.format('%.0f:0:%.0f', now - elapsed, left), idle
end

local function refund_sliding_window(state, at, charged)
  local tick, length, limit = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local cost = tonumber(ARGV[at + 4])
  local now_tick = (now - now % tick) / tick
  local start, previous, current = window_of(state)
  local elapsed
  previous, current, elapsed = window_at(start, previous, current, tick, length, now_tick)
  previous, current = math.min(previous, limit), math.min(current, limit)
  start = now_tick - elapsed
  if charged > now or charged < (start - length) * tick then return nil end
  if charged >= start * tick then
    current = current - cost
  else
    previous = previous - cost
  end
  if previous < 0 or current < 0 then return nil end
  local idle = 0
  if current > 0 then
    idle = (start + 2 * length) * tick - now
  elseif previous > 0 then
    idle = (start + length) * tick - now
  end
  return string.format('%.0f:%.0f:%.0f', start * tick, previous, current), idle
end

local function refund_sliding_log(state, at, charged)
  local window, cost = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 3])
  local times, costs = charges_at(state, window)
  local left_times, left_costs, found = {}, {}, false
  for i, time in ipairs(times) do
    local left = costs[i]
    if time == charged then found, left = left >= cost, left - cost end
    if left > 0 then
      left_times[#left_times + 1], left_costs[#left_costs + 1] = time, left
    end
  end
  if not found then return nil end
  local idle = #left_times > 0 and left_times[#left_times] + window - now or 0
  return entries_text('L', left_times, left_costs, {}), idle
end

-- a permit is known by its number, whenever it was taken
local function refund_concurrency(state, at)
  local found, _, _, _, value, idle = release(state, at, 5)
  if found == 1 then return value, idle end
end

local REFUNDS = {
  b = { refund_debt, 6 },
  f = { refund_fixed_window, 4 },
  s = { refund_sliding_window, 5 },
  l = { refund_sliding_log, 4 },
  q = { refund_debt, 6 },
  c = { refund_concurrency, 5 },
}

local charged, at = tonumber(ARGV[1]), 2
local refunds = {}
for i, key in ipairs(KEYS) do
  local refund = REFUNDS[ARGV[at]]
  refunds[i] = { refund[1](redis.call('GET', key), at, charged) }
  at = at + 1 + refund[2]
end

local reply = {}
for i, key in ipairs(KEYS) do
  local value, idle = unpack(refunds[i], 1, 2)
  if value then write(key, value, idle) end
  reply[i] = value and 1 or 0
end
return reply
