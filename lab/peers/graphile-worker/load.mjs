import { fail, run } from "../load_protocol.mjs";
import { Logger, open, send, startInstance, version } from "./peer.mjs";

const TASK = "bench";

run(async ({ url, producers, consumers, rate, keys }) => {
  // graphile-worker's benchmark does the same: four instances for throughput, and one for latency,
  // because each new job wakes every instance.
  const instances = consumers > 0 || rate !== undefined ? 1 : 4;
  const concurrentJobs = consumers || 24;
  const size = Math.max(500, concurrentJobs + 1);

  let stopping = false;
  const logger = new Logger(() => (level, message) => {
    // A worker that is being stopped logs the jobs that it gives up.
    if (level === "error" && !stopping) fail(message);
  });
  const consumer = {
    connectionString: url,
    concurrentJobs,
    maxPoolSize: concurrentJobs + 1,
    localQueue: { size },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger,
  };
  const sending = await open({ connectionString: url, maxPoolSize: Math.max(producers, 4), logger });
  await sending.migrate();
  let running = [];

  return {
    version,
    settings:
      (keys > 0 ? "a named queue a key; " : "") +
      `${instances} instance(s) in one process, each with ${concurrentJobs} concurrentJobs and a localQueue of ${size}; ` +
      "completeJobBatchDelay 0; LISTEN and a poll of 2 s",
    send: (payloads) =>
      send(sending, TASK, payloads, keys > 0 && payloads.length === 1 ? { queueName: `key ${payloads[0].key}` } : {}),
    async consume(receive) {
      const start = () => startInstance({ preset: { worker: consumer }, taskList: { [TASK]: receive }, parsedCronItems: [] });
      running = await Promise.all(Array.from({ length: instances }, start));
    },
    async stop() {
      stopping = true;
      await Promise.all(running.map((instance) => instance.stop()));
      await sending.release();
    },
  };
});
