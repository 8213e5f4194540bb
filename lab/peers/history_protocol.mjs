// The protocol of the checker (README.md beside this file) for the peers on Node. A peer's history.mjs says how to install, send and
// consume; `run` does the rest: the history, the messages, and the work of a handler.
import { openSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "./common.mjs";

/** What the environment says. */
export const told = {
  url: process.env.RIVAL_URL,
  part: process.env.RIVAL_PART,
  nr: Number(process.env.RIVAL_NR),
  lease: Number(process.env.RIVAL_LEASE_MS),
  attempts: Number(process.env.RIVAL_ATTEMPTS),
};
export const WORK = "work";
export const EXACT = "exact";
/** Handlers of each queue at a time. */
export const SLOTS = 4;
export const EXACT_SLOTS = 2;

/** A line before each operation and one after it, each a single write. */
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

/** A number, and a filling that follows from it. */
function payload(tag) {
  return `${tag}:${"x".repeat(tag % 61 === 0 ? 5000 : tag % 90)}`;
}

function tagOf(text) {
  const tag = Number.parseInt(text, 10);
  return payload(tag) === text ? tag : 0;
}

/** Tries again, as a supervisor would, what cannot connect at present. */
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

/** How long a handler takes, and whether it fails: the same for every peer. */
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
 * The handler of every message. `effect(tag, by)` enters it in the ledger, and ends the message with it; what the library makes of the end of
 * the handler is in its tables.
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
 * A part, from its beginning until the input ends. A peer has `install()`, which returns `version` and `settings`; `producer()`, which returns
 * `send(queue, texts)` (the ids, once they are stored) and `close()`; `consumer(handle)`, which returns `stop()`; and `hasExact`.
 */
export async function run(peer) {
  // What happens in the background is the peer's own affair; an error that it does not catch ends the process, as Node has it.
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
