
-- Concurrency: permits that are given back, or expire with their lease.
--
-- KEYS  the permits
-- ARGV  1 lease: microseconds after which a permit is free again at the latest
--       2 limit: permits at once, at most 1000
--       3 cost: permits the request takes, 4 usable: the limit less what is reserved
--       5 id: the request's number in hexadecimal, to give the permits back by
-- Reply outcome, remaining, wait, reset
--       outcome: 0 refused, 1 allowed, 2 can never pass; remaining: free permits; wait:
--       microseconds until enough leases have ended (0 unless refused); reset: microseconds until
--       all have
-- TTL   reset in milliseconds, rounded up
--
-- A refusal writes nothing, unless a permit lasts for longer than a lease from now: then the clock
-- went back or the lease was shortened, and it lasts for one lease. Why a script: the permits are
-- counted and taken in one.

-- when a permit taken now ends; the core knows no later time than the number
local function lease_end(lease)
  return math.min(now + lease, 4503599627370495)
end

-- the permits that are held now, and whether one had to be shortened
local function permits_at(state, lease)
  local untils, costs, ids, repaired = {}, {}, {}, false
  local stored, stored_costs, stored_ids = entries_of(state, 'P', '^(%x+@)(%d+):?(%d*),')
  local latest = lease_end(lease)
  for i, time in ipairs(stored) do
    if time > latest then repaired, time = true, latest end
    if time > now then
      untils[#untils + 1], costs[#costs + 1], ids[#ids + 1] = time, stored_costs[i], stored_ids[i]
    end
  end
  return untils, costs, ids, repaired
end

local function concurrency(state, at, peek)
  local lease, limit = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local cost, usable = peek and 0 or tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local untils, costs, ids, write = permits_at(state, lease)

  local taken = sum(costs)
  local outcome, wait = 1, 0
  if cost > usable then
    outcome = 2
  elseif cost > 0 and taken + cost > usable then
    outcome, wait = 0, wait_for(taken + cost - usable, untils, costs, 0)
  elseif cost > 0 then
    untils[#untils + 1], costs[#costs + 1] = lease_end(lease), cost
    ids[#ids + 1], taken, write = ARGV[at + 5] .. '@', taken + cost, true
  end

  local reset = #untils > 0 and untils[#untils] - now or 0
  local value = write and entries_text('P', untils, costs, ids)
  return outcome, math.max(limit - taken, 0), wait, reset, value, reset
end
