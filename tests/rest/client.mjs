// What Upstash's own client gets from the lab's REST server. One case is run, named as an argument.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { WEIR_UPSTASH_CLIENT, URL_OF_SERVER, TOKEN } = process.env;
const { Redis, errors } = await import(pathToFileURL(WEIR_UPSTASH_CLIENT));

const connect = (options = {}) => new Redis({
  url: URL_OF_SERVER,
  token: TOKEN,
  retry: false,
  enableTelemetry: false,
  // Strings as they are, and not what they are in JSON.
  automaticDeserialization: false,
  // One request for each command: by itself, the client makes a pipeline of a single one too.
  enableAutoPipelining: false,
  ...options,
});

const ODD = "\u0000\r\n\"\\/%?#&+ é 😀 \u007f {1}";
const INTEGERS = [1, 0, -1, 2147483648, 1785542400000000];
const UNKNOWN = "0".repeat(40);

const cases = {
  async values_come_back() {
    const redis = connect();
    assert.equal(await redis.set("a", "b"), "OK");
    assert.equal(await redis.get("a"), "b");
    assert.equal(await redis.get("none"), null);
    assert.equal(await redis.incr("n"), 1);
    assert.equal(await redis.set("ok", "OK"), "OK");
    assert.equal(await redis.get("ok"), "OK");
    assert.equal(await redis.ping(), "PONG");
    assert.deepEqual(await redis.mget("a", "none", "ok"), ["b", null, "OK"]);
    const plain = connect({ automaticDeserialization: true });
    await plain.set("object", { x: [1, "é"] });
    assert.deepEqual(await plain.get("object"), { x: [1, "é"] });
  },

  async odd_strings_are_unharmed() {
    for (const responseEncoding of ["base64", false]) {
      const redis = connect({ responseEncoding });
      await redis.set(ODD, ODD);
      assert.equal(await redis.get(ODD), ODD);
      const echo = "return {KEYS[1], ARGV[1], #ARGV[2]}";
      assert.deepEqual(await redis.eval(echo, [ODD], [ODD, ""]), [ODD, ODD, 0]);
      assert.equal(await redis.eval("return '\\255'", [], []), "\ufffd");
    }
  },

  async scripts_reply_integers() {
    const redis = connect();
    const text = `return {${INTEGERS}}`;
    assert.deepEqual(await redis.eval(text, ["k"], []), INTEGERS);
    const sha1 = await redis.scriptLoad(text);
    assert.deepEqual(await redis.evalsha(sha1, ["k"], ["x"]), INTEGERS);
    assert.deepEqual(await redis.eval("return {1, {2, 'OK', {3}}}", [], []), [1, [2, "OK", [3]]]);
  },

  async an_unknown_script_is_an_error() {
    const redis = connect();
    await assert.rejects(redis.evalsha(UNKNOWN, ["k"], []), (error) => {
      assert.equal(error.name, "UpstashError");
      assert.match(error.message, /^NOSCRIPT No matching script/);
      return true;
    });
    const piped = connect({ enableAutoPipelining: true });
    await assert.rejects(piped.evalsha(UNKNOWN, ["k"], []), /NOSCRIPT No matching script/);
    // The client's own way out.
    const script = redis.createScript("return {7}");
    assert.deepEqual(await script.exec(["k"], []), [7]);
  },

  async a_pipeline_keeps_its_order_and_its_errors() {
    const pipeline = connect().pipeline();
    pipeline.set("text", "x").incr("text").evalsha(UNKNOWN, ["k"], []).get("text");
    const results = await pipeline.exec({ keepErrors: true });
    assert.deepEqual(results.map(({ result }) => result), ["OK", undefined, undefined, "x"]);
    assert.match(results[1].error, /^ERR value is not an integer/);
    assert.match(results[2].error, /^NOSCRIPT /);
  },

  async a_transaction_runs_as_one() {
    const redis = connect();
    const results = await redis.multi().set("n", "1").incr("n").eval("return {3}", ["n"], []).exec();
    assert.deepEqual(results, ["OK", 2, [3]]);
    const errors = await redis.multi().set("text", "x").incr("text").exec({ keepErrors: true });
    assert.match(errors[1].error, /^ERR value is not an integer/);
  },

  async a_wrong_token_is_an_error() {
    const redis = connect({ token: `${TOKEN}x` });
    await assert.rejects(redis.get("a"), (error) => {
      assert.ok(error instanceof errors.UpstashError);
      assert.match(error.message, /WRONGPASS/);
      return true;
    });
  },
};

await cases[process.argv[2]]();
console.log("done");
