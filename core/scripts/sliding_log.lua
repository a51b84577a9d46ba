
-- Sliding log.
--
-- KEYS  the log
-- ARGV  1 window: microseconds for which a charge counts
--       2 limit: tokens in any window, at most 1000
--       3 cost: tokens the request takes, 4 usable: the limit less what is reserved
-- Reply outcome, remaining, wait, reset
--       outcome: 0 refused, 1 allowed, 2 can never pass; remaining: tokens left; wait:
--       microseconds until the same request passes (0 unless refused); reset: microseconds until
--       the last charge has left the window
-- TTL   reset in milliseconds, rounded up
--
-- A refusal writes nothing, unless a charge lies in the future: then the clock went back, and it
-- counts as made now. Why a script: the charges are read and added to in one. Time and memory grow
-- with the charges in a window.

-- the charges that count now, no time twice; whether one was made in the future; and a function
-- that adds one
local function charges_at(state, window)
  local times, costs, repaired = {}, {}, false
  local stored, stored_costs = entries_of(state, 'L', '^()(%d+):?(%d*),')
  local function charge(time, tokens)
    if times[#times] == time then
      costs[#costs] = costs[#costs] + tokens
    else
      times[#times + 1], costs[#costs + 1] = time, tokens
    end
  end
  for i, time in ipairs(stored) do
    if time > now then repaired, time = true, now end
    if now - time < window then charge(time, stored_costs[i]) end
  end
  return times, costs, repaired, charge
end

local function sliding_log(state, at, peek)
  local window, limit = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local cost, usable = peek and 0 or tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local times, costs, write, charge = charges_at(state, window)

  local taken = sum(costs)
  local outcome, wait = 1, 0
  if cost > usable then
    outcome = 2
  elseif cost > 0 and taken + cost > usable then
    outcome, wait = 0, wait_for(taken + cost - usable, times, costs, window)
  elseif cost > 0 then
    charge(now, cost)
    taken, write = taken + cost, true
  end

  local reset = #times > 0 and times[#times] + window - now or 0
  local value = write and entries_text('L', times, costs, {})
  return outcome, math.max(limit - taken, 0), wait, reset, value, reset
end
