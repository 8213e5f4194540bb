// Runs pg-boss through its documented calls: work() ends jobs by itself, or together with an effect
// in one transaction.
import { EXACT, EXACT_SLOTS, SLOTS, WORK, persist, run, told } from "../history_protocol.mjs";
import { open, send, version } from "./peer.mjs";

const seconds = told.lease / 1000;

function start(options) {
  const times = { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1 };
  const error = (error) => console.error(error?.message || error);
  return open({ connectionString: told.url, ...times, ...options }, { error });
}

/**
 * Returns the first 13 hexadecimal digits of the job's id. JavaScript and PostgreSQL both represent
 * a number of this size exactly.
 */
const numberOf = (id) => Number.parseInt(id.replaceAll("-", "").slice(0, 13), 16);

await run({
  hasExact: true,
  async install() {
    const boss = await start({});
    const queue = { retryLimit: told.attempts - 1, expireInSeconds: seconds };
    for (const name of [WORK, EXACT]) await boss.createQueue(name, queue);
    await boss.stop();
    const settings =
      `expireInSeconds ${seconds}, retryLimit ${told.attempts - 1}, supervise- and monitorIntervalSeconds 1; per process localConcurrency ` +
      `${SLOTS}, and ${EXACT_SLOTS} with transactional: true; batchSize 1, pollingIntervalSeconds 0.5; handlers heed their ` +
      "signal; ids below are the first 13 hexadecimal digits of the uuid, in decimal";
    return { version, settings };
  },
  async producer() {
    const boss = await start({ supervise: false });
    return {
      async send(queue, texts) {
        const ids = await send(boss, queue, texts.map((text) => ({ text })), { many: { returnId: true } });
        return ids.map(numberOf);
      },
      close: () => boss.stop({ timeout: 3000 }),
    };
  },
  async consumer(handle) {
    const boss = await persist(() => start({}));
    const options = { batchSize: 1, includeMetadata: true, pollingIntervalSeconds: 0.5 };
    const message = (job) => ({
      id: numberOf(job.id),
      attempt: job.retryCount + 1,
      text: job.data.text,
      since: new Date(job.startedOn).getTime() * 1000,
      signal: job.signal,
    });
    await persist(() => boss.work(WORK, { ...options, localConcurrency: SLOTS }, ([job]) => handle(WORK, message(job))));
    const enter = (tx) => (tag, by) => tx.executeSql("insert into public.ledger (tag, op) values ($1, $2)", [tag, by]);
    const transactional = { ...options, localConcurrency: EXACT_SLOTS, transactional: true };
    await persist(() => boss.work(EXACT, transactional, ([job], tx) => handle(EXACT, message(job), enter(tx))));
    return () => boss.stop({ timeout: 8000 });
  },
});
