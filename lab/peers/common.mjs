// The code for Node that both protocols use.
import { readFileSync } from "node:fs";

/** Returns the current time in microseconds since 1970. */
export function now() {
  return Math.round((performance.timeOrigin + performance.now()) * 1000);
}

/** Returns the name and version of a peer's package; `peer` is the peer's `import.meta.url`. */
export function installed(peer, name) {
  return `${name} ${JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, peer))).version}`;
}
