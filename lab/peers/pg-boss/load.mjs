import { fail, run } from "../load_protocol.mjs";
import { open, send, version } from "./peer.mjs";

const QUEUE = "bench";

run(async ({ url, batch, producers, consumers, rate, wait, keys }) => {
  // Commits with a NOTIFY wait for each other. So pg-boss' default, which sends no NOTIFY, is best
  // for throughput.
  const paced = rate !== undefined;
  const notify = wait === "notify" || (wait === "best" && paced);
  // Each new job wakes all workers of the queue.
  const workers = consumers || (paced ? 2 : 4);
  // A worker waits after a batch that is not full. With a batchSize of 1 it would wait after every
  // job.
  const batchSize = consumers > 0 && batch > 1 ? batch : 1000;

  const options = {
    connectionString: url,
    max: Math.max(producers, 4) + workers,
    // Calls that have to wait for a connection are late, but they are not lost.
    connectionTimeoutMillis: 0,
    useListenNotify: notify,
  };
  const warning = ({ message, data }) => {
    if (data?.type === "listen_notify_unavailable") fail(message);
  };
  const boss = await open(options, { error: fail, warning });
  await boss.createQueue(QUEUE, keys > 0 ? { notify, policy: "key_strict_fifo" } : { notify });
  const optionsOf = ({ key }) => (keys > 0 ? { singletonKey: `key ${key}` } : {});
  const working = { localConcurrency: workers, batchSize, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };

  return {
    version,
    settings:
      (keys > 0 ? "policy key_strict_fifo, " : "") +
      `localConcurrency ${workers}, batchSize ${batchSize}, burstWhenBatchFull; ` +
      (notify ? "LISTEN and a poll of 30 s" : "a poll of 0.5 s"),
    send: (payloads) => send(boss, QUEUE, payloads, { one: optionsOf(payloads[0]) }),
    consume: (receive) =>
      boss.work(QUEUE, working, async (jobs) => {
        for (const job of jobs) receive(job.data);
      }),
    stop: () => boss.stop({ timeout: 3000 }),
  };
});
