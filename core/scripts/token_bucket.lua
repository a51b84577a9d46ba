
-- Token bucket (and GCRA) of any rate.
--
-- KEYS  the bucket
-- ARGV  1 tick: microseconds the clock counts by
--       2 refill: units that a tick brings, 3 token: units that make a token
--       4 capacity: units of a full bucket
--       5 price: units the request takes, 6 usable: units it may draw down from (the capacity less
--       what is reserved)
-- Reply outcome, remaining, wait, reset
--       outcome: 0 refused, 1 allowed, 2 can never pass; remaining: whole tokens, rounded down;
--       wait: microseconds until the same request passes (0 unless refused); reset: microseconds
--       until the bucket is full
-- TTL   reset in milliseconds, rounded up: a full bucket and no bucket are the same
--
-- A refusal writes nothing, unless the state owes more than the capacity: then the clock went back
-- or the limit was changed, and the bucket counts as empty now. Why a script: between the read and
-- the write of one request nobody else may read.
local function token_bucket(state, at, peek)
  return debt(state, at, peek, false)
end
