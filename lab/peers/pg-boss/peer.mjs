// The code that both entry points share.
import { PgBoss } from "pg-boss";
import { installed } from "../common.mjs";

export const version = installed(import.meta.url, "pg-boss");

/** Installs the schema and starts pg-boss. `on` contains a listener for each observed event. */
export async function open(options, on) {
  const boss = new PgBoss(options);
  for (const [event, heed] of Object.entries(on)) boss.on(event, heed);
  await boss.start();
  return boss;
}

/**
 * Sends one message (with the options `one`) or many (with `many`) in one call. Returns the ids; for
 * many messages only if the options request them.
 */
export async function send(boss, queue, payloads, { one, many } = {}) {
  if (payloads.length === 1) return [await boss.send(queue, payloads[0], one)];
  return boss.insert(queue, payloads.map((data) => ({ data })), many);
}
