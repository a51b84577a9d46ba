// What other rate limiters send to Redis, as their installed packages send it.
//
//   node peers.mjs <folder with node_modules> <port of a Redis> <requests a minute> <cost of the first>
//
// Each library is called with its own interface, on a clock that stands still; what reaches Redis is
// looked at on the way. Printed as JSON: for each limiter the script's text, and KEYS and ARGV of a
// caller's first request and of later ones, with these words in the place of what changes:
//
//   <id> the caller   <now> milliseconds   <minute> the minute's number   <last-minute> one less
//
// That the words stand for all that changes is checked with another caller at another time. Nothing
// of the libraries is kept in this repository.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, port, perMinute, firstCost] = process.argv.slice(2);
const limit = Number(perMinute);
const require = createRequire(join(folder, 'package.json'));
const { Redis } = require('ioredis');
const { Ratelimit } = require('@upstash/ratelimit');
const { RateLimiterRedis } = require('rate-limiter-flexible');
const gcra = require('redis-gcra');

const MINUTE = 60_000;
// No longer than Weir's own prefix, so that a byte saved is not one of a name.
const PREFIX = 'rate';

const redis = new Redis({ host: '127.0.0.1', port: Number(port) });
let sent = [];
const send = redis.sendCommand.bind(redis);
redis.sendCommand = (command, ...rest) => {
  if (/^eval(sha)?$/i.test(command.name)) sent.push(command);
  return send(command, ...rest);
};

// The interface that @upstash/ratelimit wants, on another client.
const upstashClient = {
  eval: (script, keys, args) => redis.eval(script, keys.length, ...keys, ...args),
  evalsha: (sha, keys, args) => redis.evalsha(sha, keys.length, ...keys, ...args),
};

const upstash = (name, kind, limiter) => {
  const limits = new Ratelimit({ redis: upstashClient, limiter, prefix: PREFIX, ephemeralCache: false });
  const ask = async (id, rate) => (await limits.limit(id, { rate })).success;
  return { package: '@upstash/ratelimit', name, kind, ask };
};

const flexible = () => {
  const limits = new RateLimiterRedis({ storeClient: redis, points: limit, duration: 60, keyPrefix: PREFIX });
  const ask = async (id, points) => (await limits.consume(id, points)).remainingPoints >= 0;
  return { package: 'rate-limiter-flexible', name: 'fixed window', kind: 'window', ask };
};

const losant = () => {
  const limits = gcra({ redis, keyPrefix: PREFIX, burst: limit, rate: limit, period: MINUTE });
  const ask = async (key, cost) => !(await limits.limit({ key, cost })).limited;
  return { package: 'redis-gcra', name: 'GCRA', kind: 'bucket', ask };
};

const limiters = [
  // One token at a time, so that it fills as evenly as the others.
  upstash('token bucket', 'bucket', Ratelimit.tokenBucket(1, `${MINUTE / limit} ms`, limit)),
  losant(),
  flexible(),
  upstash('fixed window', 'window', Ratelimit.fixedWindow(limit, '1 m')),
  upstash('sliding window', 'window', Ratelimit.slidingWindow(limit, '1 m')),
];

const realNow = Date.now;

// What one request sends: the script's text, KEYS and ARGV.
async function capture(limiter, id, cost, now) {
  await redis.flushall();
  // So that the client sends the text, too.
  await redis.script('FLUSH');
  sent = [];
  Date.now = () => now;
  const allowed = await limiter.ask(id, cost);
  Date.now = realNow;
  if (!allowed) throw new Error(`${limiter.package} refused ${cost} of ${limit}`);
  // Only now: the client puts the text into a command when it writes it out.
  const [text, count, ...words] = sent.at(-1).args.map(String);
  return { text, keys: words.slice(0, Number(count)), args: words.slice(Number(count)) };
}

const meanings = (id, now) => [
  ['<id>', id],
  ['<now>', String(now)],
  ['<minute>', String(Math.floor(now / MINUTE))],
  ['<last-minute>', String(Math.floor(now / MINUTE) - 1)],
];
const replace = (words, pairs) =>
  words.map((word) => pairs.reduce((text, [from, to]) => text.replaceAll(from, to), word));

async function template(limiter, cost) {
  const [id, now] = [`key_${'5'.repeat(16)}`, 1_800_000_012_345];
  const { text, keys, args } = await capture(limiter, id, cost, now);
  const words = meanings(id, now).map(([word, meaning]) => [meaning, word]);
  const found = { text, keys: replace(keys, words), args: replace(args, words) };
  const [otherId, later] = [`key_${'7'.repeat(16)}`, 1_800_777_777_777];
  const other = await capture(limiter, otherId, cost, later);
  for (const part of ['keys', 'args']) {
    const expected = replace(found[part], meanings(otherId, later));
    if (JSON.stringify(other[part]) !== JSON.stringify(expected)) {
      throw new Error(`${limiter.package} sends ${other[part]}, not ${expected}`);
    }
  }
  if (other.text !== text) throw new Error(`${limiter.package} has another script for each caller`);
  return found;
}

const version = (name) =>
  JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version.replace(/^v/, '');

const peers = [];
for (const limiter of limiters) {
  const { package: name, kind } = limiter;
  const first = await template(limiter, Number(firstCost));
  const again = await template(limiter, 1);
  if (first.text !== again.text) throw new Error(`${name} has another script for each cost`);
  peers.push({
    name: `${name} ${version(name)}: ${limiter.name}`,
    kind,
    text: first.text,
    first: { keys: first.keys, args: first.args },
    again: { keys: again.keys, args: again.args },
  });
}
console.log(JSON.stringify(peers));
redis.disconnect();
