
-- Sliding window counter.
--
-- KEYS  the counter
-- ARGV  1 tick: microseconds the clock counts by
--       2 length: ticks of a window
--       3 limit: tokens per window
--       4 cost: tokens the request takes, 5 usable: the limit less what is reserved
-- Reply outcome, remaining, wait, reset
--       outcome: 0 refused, 1 allowed, 2 can never pass; remaining: whole tokens left by the
--       estimate, rounded down; wait: microseconds until the same request passes (0 unless
--       refused); reset: microseconds until nothing counts any more
-- TTL   reset in milliseconds, rounded up
--
-- With e ticks of the window gone, the estimate is previous * (length - e) / length + current; it
-- is kept multiplied by `length`, so nothing is rounded (2 * limit * length is below 2^53). A
-- refusal writes nothing, unless the clock went back before the window or the limit was lowered
-- below a count. Why a script: both counts are read and written in one.
local function sliding_window(state, at, peek)
  local tick, length, limit = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local cost, usable = peek and 0 or tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local now_tick = (now - now % tick) / tick
  local start, previous, current = window_of(state)
  local elapsed, write
  previous, current, elapsed, write =
    window_at(start, previous, current, tick, length, now_tick)
  write = write or previous > limit or current > limit
  previous, current = math.min(previous, limit), math.min(current, limit)
  start = now_tick - elapsed

  local outcome, wait = 1, 0
  local weight = previous * (length - elapsed) + current * length
  if cost > usable then
    outcome = 2
  elseif cost > 0 and weight > (usable - cost) * length then
    -- within this window the share of the last one must shrink; if this one's count alone is too
    -- much, its share in the next window must
    local from, shrinking, fixed = 0, previous, current + cost
    if fixed > usable then from, shrinking, fixed = length, current, cost end
    local overlap = (usable - fixed) * length
    if shrinking > 0 then overlap = (overlap - overlap % shrinking) / shrinking end
    outcome, wait = 0, (start + from + length - math.min(overlap, length)) * tick - now
  elseif cost > 0 then
    current, write = current + cost, true
  end

  weight = previous * (length - elapsed) + current * length
  local room = math.max(limit * length - weight, 0)
  local reset = 0
  if current > 0 then
    reset = (start + 2 * length) * tick - now
  elseif previous > 0 then
    reset = (start + length) * tick - now
  end
  local value = write and string.format('%.0f:%.0f:%.0f', start * tick, previous, current)
  return outcome, (room - room % length) / length, wait, reset, value, reset
end
