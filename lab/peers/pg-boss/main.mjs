import { PgBoss } from "pg-boss";
import { fail, installed, run } from "../contender.mjs";

const QUEUE = "bench";

run(async ({ url, batch, producers, consumers, rate, wait, keys }) => {
  // Being told costs the sender: commits with a NOTIFY wait for each other. So its default, no NOTIFY, is the best where the throughput counts.
  const paced = rate !== undefined;
  const notify = wait === "notify" || (wait === "best" && paced);
  // Each new job wakes all workers of the queue.
  const workers = consumers || (paced ? 2 : 4);
  // After a batch that is not full a worker waits; with a batchSize of 1, after every job.
  const batchSize = consumers > 0 && batch > 1 ? batch : 1000;

  const boss = new PgBoss({
    connectionString: url,
    max: Math.max(producers, 4) + workers,
    // Calls that wait for a connection are late, not lost.
    connectionTimeoutMillis: 0,
    useListenNotify: notify,
  });
  boss.on("error", fail);
  boss.on("warning", ({ message, data }) => {
    if (data?.type === "listen_notify_unavailable") fail(message);
  });
  await boss.start();
  await boss.createQueue(QUEUE, keys > 0 ? { notify, policy: "key_strict_fifo" } : { notify });
  const optionsOf = ({ key }) => (keys > 0 ? { singletonKey: `key ${key}` } : {});
  const options = { localConcurrency: workers, batchSize, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };

  return {
    version: installed(import.meta.url, "pg-boss"),
    settings:
      (keys > 0 ? "policy key_strict_fifo, " : "") +
      `localConcurrency ${workers}, batchSize ${batchSize}, burstWhenBatchFull; ` +
      (notify ? "LISTEN and a poll of 30 s" : "a poll of 0.5 s"),
    send: (payloads) =>
      payloads.length === 1 ? boss.send(QUEUE, payloads[0], optionsOf(payloads[0])) : boss.insert(QUEUE, payloads.map((data) => ({ data }))),
    consume: (receive) =>
      boss.work(QUEUE, options, async (jobs) => {
        for (const job of jobs) receive(job.data);
      }),
    stop: () => boss.stop({ timeout: 3000 }),
  };
});
