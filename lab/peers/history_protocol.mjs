// The protocol of the checker (README.md in this folder) for the peers on Node. A peer's
// history.mjs defines how to install, send and consume. `run` does the rest: the history, the
// messages, and the work of a handler.
import { openSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "./common.mjs";

/** The settings in the environment. */
export const told = {
  url: process.env.RIVAL_URL,
  part: process.env.RIVAL_PART,
  nr: Number(process.env.RIVAL_NR),
  lease: Number(process.env.RIVAL_LEASE_MS),
  attempts: Number(process.env.RIVAL_ATTEMPTS),
};
export const WORK = "work";
export const EXACT = "exact";
/** The number of concurrent handlers of each queue. */
export const SLOTS = 4;
export const EXACT_SLOTS = 2;

/** Writes a line before each operation and a line after it, each in a single write. */
class History {
  #file = openSync(process.env.RIVAL_HISTORY, "ax");
  #next = 0;
  #process = basename(process.env.RIVAL_HISTORY, ".jsonl");

  invoked(call) {
    this.#next += 1;
    this.say(this.#next, { invoked: call });
    return this.#next;
  }

  say(op, said) {
    writeSync(this.#file, JSON.stringify({ at: now(), op, ...said }) + "\n");
  }

  name(op) {
    return `${this.#process}:${op}`;
  }
}

/** Returns a payload with the number `tag` and a filling derived from it. */
function payload(tag) {
  return `${tag}:${"x".repeat(tag % 61 === 0 ? 5000 : tag % 90)}`;
}

function tagOf(text) {
  const tag = Number.parseInt(text, 10);
  return payload(tag) === text ? tag : 0;
}

/** Repeats `make` until it can connect, as a supervisor would. */
export async function persist(make) {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      console.error(`not yet: ${error?.message || error}`);
      await sleep(500);
    }
  }
}

/** Returns a handler's duration in milliseconds, and `fails`. Both are the same for every peer. */
function workOf(tag, attempt, queue) {
  const kind = tag % 100;
  const fails = queue === WORK && (kind < 3 || (attempt === 1 && (kind < 9 || (kind >= 12 && kind < 15))));
  if (kind >= 9 && kind < 15 && attempt <= 2) return { lasts: told.lease * (attempt === 1 ? 1.5 : 0.7), fails };
  if (kind >= 15 && kind < 25) return { lasts: told.lease * 0.6, fails };
  return { lasts: 5 + (tag % 25), fails };
}

async function produce(send, hasExact, stopped) {
  const history = new History();
  for (let next = told.nr * 1_000_000; !stopped(); ) {
    next += 1;
    const queue = hasExact && next % 3 === 0 ? EXACT : WORK;
    const n = next % 5 === 0 ? 5 : 1;
    const tags = Array.from({ length: n }, (_, k) => next + k);
    next += n - 1;
    const op = history.invoked({ verb: "enqueue", queue, tags });
    try {
      history.say(op, { ok: { ids: await send(queue, tags.map(payload)) } });
    } catch (error) {
      history.say(op, { unknown: String(error?.message || error) });
    }
    await sleep((told.lease * n) / 40);
  }
}

/**
 * Returns the handler of every message. `effect(tag, by)` enters the message in the ledger and ends
 * it. The peer's tables show the effect of the handler's outcome.
 */
function handler() {
  const history = new History();
  return async (queue, { id, attempt, text, since, signal }, effect) => {
    const tag = tagOf(text);
    const call = { verb: "handle", queue, named: [[id, attempt]], tags: [tag], ms: told.lease, since };
    const op = history.invoked(call);
    try {
      const { lasts, fails } = workOf(tag, attempt, queue);
      await sleep(lasts, undefined, { signal });
      if (fails) throw new Error("it failed");
      await effect?.(tag, history.name(op));
    } catch (error) {
      history.say(op, { failed: String(error?.message || error) });
      throw error;
    }
    history.say(op, { ok: {} });
  };
}

/**
 * Plays a part until the input ends. A peer has these members:
 * - `install()` returns `version` and `settings`.
 * - `producer()` returns `send(queue, texts)`, which returns the ids once the messages are stored, and
 *   `close()`.
 * - `consumer(handle)` returns `stop()`.
 * - `hasExact` is true if the peer can end a job together with an effect.
 */
export async function run(peer) {
  // If the peer does not catch an error in the background, the error ends the process, as is Node's
  // default.
  if (told.part === "install") {
    console.log(JSON.stringify(await peer.install()));
    process.exit(0);
  }
  let isStopped = false;
  const ended = new Promise((resolve) => {
    process.stdin.on("end", () => {
      isStopped = true;
      resolve();
    });
    process.stdin.resume();
  });
  if (told.part === "produce") {
    const { send, close } = await persist(() => peer.producer());
    await produce(send, peer.hasExact, () => isStopped);
    await close();
  } else {
    const stop = await peer.consumer(handler());
    await ended;
    await stop();
  }
  process.exit(0);
}
