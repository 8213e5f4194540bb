// Calls trunkline.enqueue through node-postgres, for the benchmark. Each process is one caller.
import pg from "pg";
import { installed } from "../common.mjs";
import { run } from "../load_protocol.mjs";

run(async ({ url }) => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    version: installed(import.meta.url, "pg"),
    settings: "a Client with a named statement",
    send: (payloads) =>
      Promise.all(
        payloads.map((payload) =>
          client.query({ name: "enqueue", text: "select trunkline.enqueue($1, $2)", values: ["bench", JSON.stringify(payload)] }),
        ),
      ),
    stop: () => client.end(),
  };
});
