
-- Fixed window.
--
-- KEYS  the counter
-- ARGV  1 length: microseconds of a window
--       2 limit: tokens per window
--       3 cost: tokens the request takes, 4 usable: the limit less what is reserved
-- Reply outcome, remaining, wait, reset
--       outcome: 0 refused, 1 allowed, 2 can never pass; remaining: tokens left in this window;
--       wait: microseconds until the same request passes (0 unless refused); reset: microseconds
--       until the window ends, 0 if nothing was taken in it
-- TTL   reset in milliseconds, rounded up; a window that a clock put off the multiples of its
--       length is kept for one more, so that the next follows it
--
-- A refusal writes nothing, unless the clock went back before the window or the limit was lowered
-- below its count. Why a script: between the read and the write of one request nobody else may
-- read, and a counter without its TTL would never be forgotten.
local function fixed_window(state, at, peek)
  local length, limit = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local cost, usable = peek and 0 or tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local start, _, counted = window_of(state)
  local _, taken, elapsed, write = window_at(start, 0, counted, 1, length, now)
  if taken > limit then taken, write = limit, true end

  local outcome, wait = 1, 0
  if cost > usable then
    outcome = 2
  elseif cost > 0 and taken + cost > usable then
    outcome, wait = 0, length - elapsed
  elseif cost > 0 then
    taken, write = taken + cost, true
  end

  local reset, idle, value = 0, 0, nil
  if taken > 0 then reset, idle = length - elapsed, length - elapsed end
  if write then
    value = string.format('%.0f:0:%.0f', now - elapsed, taken)
    if (now - elapsed) % length > 0 then idle = idle + length end
  end
  return outcome, limit - taken, wait, reset, value, idle
end
