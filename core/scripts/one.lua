
-- The script of one limit: read, decide, write, answer.
local function one(step)
  local outcome, remaining, wait, reset, value, idle = step(redis.call('GET', KEYS[1]), 0)
  if value then write(KEYS[1], value, idle) end
  return { outcome, remaining, wait, reset }
end
