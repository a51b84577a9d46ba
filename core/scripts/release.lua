
-- Gives the permits of a request back.
--
-- KEYS  the permits
-- ARGV  1 lease, 2 limit: as for concurrency
--       3 id: the request's number in hexadecimal
-- Reply outcome, remaining, 0, reset
--       outcome: 1 given back, 0 not held (its lease has ended); the others as for concurrency
-- TTL   reset in milliseconds, rounded up; the key of the last permit is deleted
--
-- Writes nothing if the request holds no permit. Why a script: the permits are read and written in
-- one.
local function release(state, at, id_at)
  local lease, limit = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local id = ARGV[at + (id_at or 3)] .. '@'
  local untils, costs, ids = {}, {}, {}
  local held, held_costs, held_ids = permits_at(state, lease)
  for i, time in ipairs(held) do
    if held_ids[i] ~= id then
      untils[#untils + 1], costs[#costs + 1], ids[#ids + 1] = time, held_costs[i], held_ids[i]
    end
  end
  local found = #untils < #held
  local reset = #untils > 0 and untils[#untils] - now or 0
  local value = found and entries_text('P', untils, costs, ids)
  return found and 1 or 0, math.max(limit - sum(costs), 0), 0, reset, value, reset
end
