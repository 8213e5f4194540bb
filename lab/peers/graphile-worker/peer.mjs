// What both entry points do alike with graphile-worker.
import { installed } from "../common.mjs";

// Else it logs every job that succeeded. Its own benchmark sets this too; it is read while the module loads.
process.env.NO_LOG_SUCCESS = "1";
const { Logger, makeWorkerUtils, run: startInstance } = await import("graphile-worker");

export { Logger, startInstance };
export const version = installed(import.meta.url, "graphile-worker");

/** Who sends; `options` are those of a worker. */
export function open(options) {
  return makeWorkerUtils({ preset: { worker: options } });
}

/** One call, for one or for many: returns the jobs. */
export async function send(utils, task, payloads, options = {}) {
  if (payloads.length === 1) return [await utils.addJob(task, payloads[0], options)];
  return utils.addJobs(payloads.map((payload) => ({ identifier: task, payload, ...options })));
}
