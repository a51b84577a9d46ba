
-- Several limits on one request, of any algorithms: all that are enforced must allow it, and a
-- request that one of them refuses is charged to none.
--
-- KEYS  one for each limit, no two the same, all in one slot of a cluster
-- ARGV  for each limit in the order of KEYS: its letter (b token bucket, f fixed window, s sliding
--       window, l sliding log, q leaky bucket, c concurrency; a capital if it is in shadow mode, so
--       that its refusal does not count), and then its ARGV as in its own script
-- Reply outcome, remaining, wait, reset of each limit in turn, as from its own script; where
--       another limit refused, an outcome 1 or 3 says that this one would have allowed the
--       request, and remaining and reset describe it uncharged. One more: now, in microseconds
--       since the epoch, when whatever was charged was charged, to give it back by
-- TTL   each key's own
--
-- A refusal writes nothing but repairs. Why a script: with one call a limit, those that allowed
-- would have charged before another refuses. Every key is read before one is written, so an error
-- leaves all as it was.
local STEPS = {
  b = { token_bucket, 6 },
  f = { fixed_window, 4 },
  s = { sliding_window, 5 },
  l = { sliding_log, 4 },
  q = { leaky_bucket, 6 },
  c = { concurrency, 5 },
}

local states, places, answers, passes = {}, {}, {}, true
local at = 1
for i, key in ipairs(KEYS) do
  local letter = string.lower(ARGV[at])
  local step = STEPS[letter]
  states[i], places[i] = redis.call('GET', key), at
  answers[i] = { step[1](states[i], at) }
  if answers[i][1] % 2 == 0 and letter == ARGV[at] then passes = false end
  at = at + 1 + step[2]
end

local reply = {}
for i, key in ipairs(KEYS) do
  local outcome, remaining, wait, reset, value, idle = unpack(answers[i], 1, 6)
  if not passes and outcome % 2 == 1 then
    local step = STEPS[string.lower(ARGV[places[i]])]
    local _
    _, remaining, _, reset, value, idle = step[1](states[i], places[i], true)
  end
  if value then write(key, value, idle) end
  for _, number in ipairs({ outcome, remaining, wait, reset }) do reply[#reply + 1] = number end
end
reply[#reply + 1] = now
return reply
