
-- Entries of sliding_log and concurrency: a time and a cost each, the earliest first. Stored as a
-- letter and the entries, each as microseconds since the one before it (the first: since the
-- epoch), :cost if it is not 1, and a comma; a permit has its number in front: number@.

-- times, costs and names of a stored text; none of a missing one or any other text
local function entries_of(state, letter, pattern)
  local times, costs, names = {}, {}, {}
  local from, time = 2, 0
  if not state or string.sub(state, 1, 1) ~= letter then return times, costs, names end
  while from <= #state do
    local first, last, name, later, cost = string.find(state, pattern, from)
    if not first or #later > 16 or #cost > 10 or #times == 1000 then return {}, {}, {} end
    time = time + tonumber(later)
    times[#times + 1], costs[#costs + 1] = time, tonumber(cost) or 1
    names[#names + 1], from = name, last + 1
  end
  if time >= 9007199254740992 then return {}, {}, {} end
  return times, costs, names
end

local function entries_text(letter, times, costs, names)
  local text, before = { letter }, 0
  for i, time in ipairs(times) do
    local cost = costs[i] == 1 and '' or string.format(':%.0f', costs[i])
    text[i + 1] = string.format('%s%.0f%s,', names[i] or '', time - before, cost)
    before = time
  end
  return table.concat(text)
end

-- microseconds until the earliest entries have ended that are in the way of `excess` tokens, each
-- entry ending `span` after its time
local function wait_for(excess, times, costs, span)
  local freed = 0
  for i, time in ipairs(times) do
    freed = freed + costs[i]
    if freed >= excess then return time + span - now end
  end
end

local function sum(costs)
  local total = 0
  for _, cost in ipairs(costs) do total = total + cost end
  return total
end
