-- Not a part of Weir: what Weir's scripts are measured beside. A token bucket in the shape that
-- articles on rate limiting usually give, written anew for this purpose: a hash of the tokens, a
-- fraction, and of the time of the last change, filled up by what has passed since.
--
-- KEYS  the bucket
-- ARGV  1 capacity, 2 tokens a second
-- Reply 1 allowed, 0 refused; it says neither what is left nor when to come back
-- TTL   the time in which an empty bucket fills
local capacity, per_second = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local millis = clock[1] * 1000 + math.floor(clock[2] / 1000)

local fields = redis.call('HMGET', KEYS[1], 'tokens', 'timestamp')
local tokens = tonumber(fields[1] or capacity)
local passed = (millis - tonumber(fields[2] or millis)) / 1000
tokens = math.min(tokens + passed * per_second, capacity)

local reply = 0
if tokens >= 1 then
  tokens, reply = tokens - 1, 1
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'timestamp', millis)
redis.call('EXPIRE', KEYS[1], math.ceil(capacity / per_second))
return reply
