// The protocol of the benchmark (README.md beside this file) for the peers on Node. A peer's load.mjs says how to install, send and consume;
// `run` does the rest: reads the settings, keeps the clock, counts and speaks.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker, parentPort, workerData } from "node:worker_threads";
import { now } from "./common.mjs";

/** How long calls and consumers may take to end once it is over, in milliseconds. */
const STOP = 5000;

/** What the environment says. */
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

/** What is counted while the clock runs. */
const tally = {
  sent: 0,
  received: 0,
  over: false,
  disordered: 0,
  latencies: new Map(),
  wanted: Infinity,
  reached: () => {},

  record(microseconds) {
    const rounded = Number(microseconds.toPrecision(3));
    this.latencies.set(rounded, (this.latencies.get(rounded) ?? 0) + 1);
  },
  /** Resolves once so many messages have been received. */
  has(wanted) {
    this.wanted = wanted;
    return new Promise((reached) => { this.reached = reached; });
  },
  start() {
    Object.assign(this, { sent: 0, received: 0, latencies: new Map() });
  },
};

/** A handler calls this for every message that it is given. */
function receive(payload) {
  if (settings.keys > 0) inOrder(payload);
  if (tally.over) return;
  if (settings.case === "cycle" && settings.rate !== undefined) tally.record(now() - payload.at);
  tally.received += 1;
  if (tally.received === tally.wanted) tally.reached();
}

/** The number that each key's next message has. */
const next = new Map();

/** Neither one that it had, nor one behind another that is still to come. */
function inOrder({ key, nr }) {
  const expected = next.get(key) ?? 0;
  if (nr !== expected) tally.disordered += 1;
  next.set(key, Math.max(expected, nr + 1));
}

const AROUND = JSON.stringify({ at: now(), pad: "" }).length;
const OF_A_KEY = settings.keys > 0 ? '"key":1000,"nr":10,'.length : 0;
const PADDING = Math.max(0, settings.payload - AROUND - OF_A_KEY);
// Without a pattern, and another piece for each message: what repeats itself would be compressed.
const POOL = randomBytes(768 * 1024).toString("base64url");
function pad() {
  const at = Math.floor(Math.random() * POOL.length);
  let text = POOL.slice(at, at + PADDING);
  while (text.length < PADDING) text += POOL.slice(0, PADDING - text.length);
  return text;
}

/** So many payloads that were to be sent at this moment. */
function payloads(n, at = now()) {
  return Array.from({ length: n }, () => ({ at, pad: pad() }));
}

const calls = new Map();

/** The next payload of a caller, whose keys are its own and have messages in turn: so the order of each key is that of the caller's calls. */
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

/** Sends as fast as the answers come, until it is over. */
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

/** Sends at a steady rate, however long the answers take. */
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

/** A thread that tells when calls are due: a timer of Node is a millisecond wide, and waits for whatever else is to be done. */
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

/** Puts the backlog in: 4 calls of 1,000 at the same time, never more than that in memory. */
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
  // With a backlog there is no warming up without consuming it.
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
 * The whole life of a contender. `install(settings)` prepares the empty database, connects and returns `version`, `settings` (in a few
 * words), `send(payloads)` (one call, for one or for many; durable when it resolves), `consume(receive)` (resolves when the consumers are
 * up) and `stop()`.
 */
export function run(install) {
  process.on("uncaughtException", fail);
  // Nobody is left to read it.
  process.stdout.on("error", () => process.exit(1));
  race(install).then(() => process.exit(0), fail);
}

if (workerData === "pacer") {
  parentPort.once("message", pace);
  parentPort.postMessage("up");
}
