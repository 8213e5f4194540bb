// The protocol of the benchmark (README.md in this folder) for the peers on Node. A peer's load.mjs
// defines how to install, send and consume. `run` does the rest: it reads the settings, keeps the
// clock, counts, and reports to the runner.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker, parentPort, workerData } from "node:worker_threads";
import { now } from "./common.mjs";

/** The time that calls and consumers have to end after the round, in milliseconds. */
const STOP = 5000;

/** The settings in the environment. */
const settings = {
  url: process.env.BENCH_URL,
  case: process.env.BENCH_CASE,
  payload: Number(process.env.BENCH_PAYLOAD),
  batch: Number(process.env.BENCH_BATCH),
  producers: Number(process.env.BENCH_PRODUCERS),
  keys: Number(process.env.BENCH_KEYS ?? 0),
  consumers: Number(process.env.BENCH_CONSUMERS),
  rate: process.env.BENCH_RATE === "max" ? undefined : Number(process.env.BENCH_RATE),
  backlog: Number(process.env.BENCH_BACKLOG),
  seconds: Number(process.env.BENCH_SECONDS),
  wait: process.env.BENCH_WAIT,
};

/** The counts of the current round. */
const tally = {
  sent: 0,
  received: 0,
  over: false,
  disordered: 0,
  latencies: new Map(),
  wanted: Infinity,
  reached: () => {},

  record(microseconds) {
    // A whole number, even for a call that takes less than 100 us.
    const rounded = Number(Math.max(0, Math.round(microseconds)).toPrecision(3));
    this.latencies.set(rounded, (this.latencies.get(rounded) ?? 0) + 1);
  },
  /** Resolves once `wanted` messages have been received. */
  has(wanted) {
    this.wanted = wanted;
    return new Promise((reached) => { this.reached = reached; });
  },
  start() {
    Object.assign(this, { sent: 0, received: 0, latencies: new Map() });
  },
};

/** Counts a message. A handler calls this function for every message. */
function receive(payload) {
  if (settings.keys > 0) inOrder(payload);
  if (tally.over) return;
  if (settings.case === "cycle" && settings.rate !== undefined) tally.record(now() - payload.at);
  tally.received += 1;
  if (tally.received === tally.wanted) tally.reached();
}

/** The number of the message that each key expects next. */
const next = new Map();

/** Counts a message that is not the next of its key: a repetition, or a message that skips others. */
function inOrder({ key, nr }) {
  const expected = next.get(key) ?? 0;
  if (nr !== expected) tally.disordered += 1;
  next.set(key, Math.max(expected, nr + 1));
}

const AROUND = JSON.stringify({ at: now(), pad: "" }).length;
const OF_A_KEY = settings.keys > 0 ? '"key":1000,"nr":10,'.length : 0;
const PADDING = Math.max(0, settings.payload - AROUND - OF_A_KEY);
// The characters are random, and each message uses a different piece of them, because repetition
// would be compressed.
const POOL = randomBytes(768 * 1024).toString("base64url");
function pad() {
  const at = Math.floor(Math.random() * POOL.length);
  let text = POOL.slice(at, at + PADDING);
  while (text.length < PADDING) text += POOL.slice(0, PADDING - text.length);
  return text;
}

/** Returns `n` payloads that are due at the time `at`. */
function payloads(n, at = now()) {
  return Array.from({ length: n }, () => ({ at, pad: pad() }));
}

const calls = new Map();

/**
 * Returns the next payload of a caller. Each caller has its own keys and uses them in turn. So the
 * order of each key's messages is the order of the caller's calls.
 */
function keyed(caller, at = now()) {
  const { keys, producers } = settings;
  const turn = calls.get(caller) ?? 0;
  calls.set(caller, turn + 1);
  const own = Math.ceil((keys - caller) / producers);
  return { at, key: 1 + caller + producers * (turn % own), nr: Math.floor(turn / own), pad: pad() };
}

function say(line) {
  process.stdout.write(JSON.stringify(line) + "\n");
}

/** Ends a contender that failed. */
export function fail(error) {
  say({ error: String(error?.message || error) });
  console.error(error);
  process.exit(1);
}

/** Makes each caller send its next call when the previous call is answered, until the round ends. */
async function closedLoop(send) {
  const producer = async (_, caller) => {
    while (!tally.over) {
      const batch = settings.keys > 0 ? [keyed(caller)] : payloads(settings.batch);
      const began = performance.now();
      await send(batch);
      if (tally.over) return;
      tally.sent += batch.length;
      if (settings.case === "send") tally.record((performance.now() - began) * 1000);
    }
  };
  await Promise.all(Array.from({ length: settings.producers }, producer));
}

/** Sends at a steady rate, without waiting for answers. */
async function openLoop(send, pacer) {
  const began = now();
  const every = (settings.batch / settings.rate) * 1e6;
  const calls = Math.floor((settings.rate * settings.seconds) / settings.batch);
  const underWay = [];
  const call = async (k) => {
    await send(payloads(settings.batch, Math.round(began + k * every)));
    if (!tally.over) tally.sent += settings.batch;
  };
  pacer.on("message", ({ from, to }) => {
    for (let k = from; k < to && !tally.over; k += 1) underWay.push(call(k));
  });
  pacer.postMessage({ began, every, calls });
  await once(pacer, "exit");
  await Promise.all(underWay);
}

/**
 * Starts a thread that reports when calls are due, because Node's timers have a resolution of a
 * millisecond and wait for other work.
 */
async function startPacer() {
  const pacer = new Worker(new URL(import.meta.url), { workerData: "pacer" });
  await once(pacer, "message");
  return pacer;
}

function pace({ began, every, calls }) {
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let k = 0; k < calls; ) {
    const early = began + k * every - now();
    if (early > 0) Atomics.wait(never, 0, 0, early / 1000);
    const due = Math.min(calls, Math.floor((now() - began) / every) + 1);
    if (due > k) parentPort.postMessage({ from: k, to: due });
    k = Math.max(k, due);
  }
}

/** Sends the backlog in up to 4 concurrent calls of 1,000 messages, to limit the memory. */
async function seed(send) {
  let left = settings.backlog;
  const seeder = async () => {
    while (left > 0) {
      const n = Math.min(left, 1000);
      left -= n;
      await send(payloads(n));
    }
  };
  await Promise.all([seeder(), seeder(), seeder(), seeder()]);
}

async function race(install) {
  if (!["send", "drain", "cycle"].includes(settings.case)) throw new Error(`no such case: ${settings.case}`);
  const stdin = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const peer = await install(settings);
  const produces = settings.case !== "drain" && settings.rate !== 0;
  const consumes = settings.case !== "send";
  // If there is a backlog, a warm-up would already consume some of its messages.
  const warms = consumes && settings.backlog === 0;

  await seed(peer.send);
  const one = (caller) => (settings.keys > 0 ? [keyed(caller)] : payloads(1));
  const each = (n) => Array.from({ length: settings.producers }, (_, caller) => peer.send(n === 1 ? one(caller) : payloads(n)));
  if (warms) {
    const handled = tally.has(settings.producers);
    await peer.consume(receive);
    await Promise.all([handled, ...each(1)]);
  } else if (!consumes) {
    await Promise.all(each(settings.batch));
  }
  const pacer = settings.rate > 0 ? await startPacer() : undefined;
  say({ ready: { version: peer.version, runtime: `node ${process.version}`, settings: peer.settings } });
  const word = (await stdin.next()).value;
  if (word?.trim() !== "go") throw new Error(`expected go, not ${word}`);
  const end = stdin.next();

  tally.start();
  const empty = tally.has(settings.case === "drain" ? settings.backlog : Infinity);
  const began = performance.now();
  const progress = setInterval(() => say({ progress: { sent: tally.sent, received: tally.received } }), 500);
  if (consumes && !warms) peer.consume(receive);
  const producing = produces ? (pacer ? openLoop : closedLoop)(peer.send, pacer) : undefined;
  await Promise.race([sleep(settings.seconds * 1000), empty, end]);
  tally.over = true;
  const seconds = (performance.now() - began) / 1000;
  pacer?.terminate();

  clearInterval(progress);
  if (tally.latencies.size > 0) say({ latency: Object.fromEntries(tally.latencies) });
  const disordered = settings.keys > 0 ? tally.disordered : undefined;
  say({ done: { sent: tally.sent, received: tally.received, seconds, disordered } });
  await Promise.race([stop(peer, producing), sleep(STOP)]);
  await end;
}

async function stop(peer, producing) {
  await producing;
  await peer.stop();
}

/**
 * Runs a contender from start to end. `install(settings)` prepares the empty database, connects, and
 * returns these members:
 * - `version`
 * - `settings`, in a few words
 * - `send(payloads)`: one call, for one message or for many; it resolves when they are durable
 * - `consume(receive)`: it resolves when the consumers are running
 * - `stop()`
 */
export function run(install) {
  process.on("uncaughtException", fail);
  // The reader is gone, so the process exits without a message.
  process.stdout.on("error", () => process.exit(1));
  race(install).then(() => process.exit(0), fail);
}

if (workerData === "pacer") {
  parentPort.once("message", pace);
  parentPort.postMessage("up");
}
