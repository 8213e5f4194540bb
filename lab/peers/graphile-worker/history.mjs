// Runs graphile-worker through its documented calls. It has no call with which a handler can end
// its job in the handler's own transaction.
import { EventEmitter } from "node:events";
import { SLOTS, WORK, persist, run, told } from "../history_protocol.mjs";
import { Logger, open, send, startInstance, version } from "./peer.mjs";

const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(`${level}: ${message}`);
});

const utils = () => open({ connectionString: told.url, logger });

await run({
  hasExact: false,
  async install() {
    const sending = await utils();
    await sending.migrate();
    await sending.release();
    const settings =
      `concurrentJobs ${SLOTS}, maxAttempts ${told.attempts}, all else default; its lock of 4 hours, which cannot be set, is made one of ` +
      `${told.lease / 1000} s: twice a second the test moves locked_at back by 4 hours where it is older than that; min- and ` +
      "maxResetLockedInterval 500 ms; a trigger of the test's notes when a job's row is deleted";
    return { version, settings };
  },
  async producer() {
    const sending = await utils();
    const options = { maxAttempts: told.attempts };
    return {
      async send(_queue, texts) {
        const jobs = await send(sending, WORK, texts.map((text) => ({ text })), options);
        // addJobs returns jobs in a different order from the one that it was given.
        const ids = new Map(jobs.map((job) => [job.payload?.text, Number(job.id)]));
        return texts.map((text) => ids.get(text));
      },
      close: () => sending.release(),
    };
  },
  async consumer(handle) {
    const task = ({ text }, { job }) =>
      handle(WORK, {
        id: Number(job.id),
        attempt: job.attempts,
        text,
        since: job.locked_at ? new Date(job.locked_at).getTime() * 1000 : undefined,
      });
    const preset = {
      worker: {
        connectionString: told.url,
        concurrentJobs: SLOTS,
        minResetLockedInterval: 500,
        maxResetLockedInterval: 500,
        events: new EventEmitter(),
        logger,
      },
    };
    const options = { preset, noHandleSignals: true, taskList: { [WORK]: task }, parsedCronItems: [] };
    const start = () => startInstance(options);
    let [runner, isOver] = [await persist(start), false];
    // Restarts a worker that gave up, as a supervisor would.
    const watch = async () => {
      while (!isOver) {
        await runner.promise.catch((error) => console.error(`it gave up: ${error?.message || error}`));
        if (!isOver) runner = await persist(start);
      }
    };
    watch();
    return async () => {
      isOver = true;
      await runner.stop();
    };
  },
});
