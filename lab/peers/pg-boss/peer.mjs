// What both entry points do alike with pg-boss.
import { PgBoss } from "pg-boss";
import { installed } from "../common.mjs";

export const version = installed(import.meta.url, "pg-boss");

/** Started, with its schema; `on` has a function for each of its events that is heeded. */
export async function open(options, on) {
  const boss = new PgBoss(options);
  for (const [event, heed] of Object.entries(on)) boss.on(event, heed);
  await boss.start();
  return boss;
}

/** One call, for one or for many, which have options of their own: returns the ids, of many if the options ask for them. */
export async function send(boss, queue, payloads, { one, many } = {}) {
  if (payloads.length === 1) return [await boss.send(queue, payloads[0], one)];
  return boss.insert(queue, payloads.map((data) => ({ data })), many);
}
