
-- Leaky bucket as a queue.
--
-- KEYS  the queue
-- ARGV  1 tick, 2 refill, 3 token, 4 capacity (longest wait and one token, in units), 5 price,
--       6 usable: as for the token bucket
-- Reply outcome, remaining, wait, reset
--       outcome: as for the token bucket, and 3: passes after `wait` microseconds in the queue;
--       remaining: requests of cost 1 that still find room; reset: until the queue is empty
-- TTL   reset in milliseconds, rounded up
--
-- A refusal writes nothing but the repair of a state that owes more than the capacity. Why a
-- script: a place in the queue is read and taken in one.
local function leaky_bucket(state, at, peek)
  return debt(state, at, peek, true)
end
