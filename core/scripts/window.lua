
-- The window that fixed_window and sliding_window share. The state is when the current window
-- began (microseconds since the epoch), and the tokens taken in the window before and in this one.
-- Stored as start:previous:current.

-- the counts at `now_tick` in windows of `length` ticks, ticks since the window began, and whether
-- the clock had stepped back before it, so that it begins now
local function window_at(start, previous, current, tick, length, now_tick)
  local elapsed = now_tick - (start - start % tick) / tick
  local inside = elapsed % length
  if elapsed < 0 then
    inside = 0
  elseif elapsed - inside == length then
    previous, current = current, 0
  elseif elapsed > inside then
    previous, current = 0, 0
  end
  -- windows that a clock put off the multiples of their length go on while something is known
  if previous + current == 0 then return 0, 0, now_tick % length, false end
  return previous, current, inside, elapsed < 0
end

-- start, previous and current of a stored text; of a missing one or any other text, those of a key
-- never seen
local function window_of(state)
  local start, previous, current = string.match(state or '', '^(%d+):(%d+):(%d+)$')
  start, previous, current = tonumber(start or 0), tonumber(previous or 0), tonumber(current or 0)
  if math.max(start, previous, current) < 9007199254740992 then return start, previous, current end
  return 0, 0, 0
end
