
-- Stores the text of a state until it says no more than that of a key never seen, `idle`
-- microseconds from now. In one command, so that no key is ever without its TTL. Redis writes a
-- whole number as its digits.
local function write(key, value, idle)
  if idle > 0 then
    local rest = idle % 1000
    local millis = (idle - rest) / 1000
    if rest > 0 then millis = millis + 1 end
    redis.call('SET', key, value, 'PX', millis)
  else
    redis.call('DEL', key)
  end
end
