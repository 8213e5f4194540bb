// The code that both entry points share.
import { installed } from "../common.mjs";

// Turns off the log of every successful job, as graphile-worker's own benchmark does. The module
// reads this variable while it loads.
process.env.NO_LOG_SUCCESS = "1";
const { Logger, makeWorkerUtils, run: startInstance } = await import("graphile-worker");

export { Logger, startInstance };
export const version = installed(import.meta.url, "graphile-worker");

/** Opens a sender. `options` are those of a worker. */
export function open(options) {
  return makeWorkerUtils({ preset: { worker: options } });
}

/** Sends one message or many messages in one call. Returns the jobs. */
export async function send(utils, task, payloads, options = {}) {
  if (payloads.length === 1) return [await utils.addJob(task, payloads[0], options)];
  return utils.addJobs(payloads.map((payload) => ({ identifier: task, payload, ...options })));
}
