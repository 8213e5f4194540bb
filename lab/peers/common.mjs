// What both protocols need of Node.
import { readFileSync } from "node:fs";

/** Microseconds since 1970. */
export function now() {
  return Math.round((performance.timeOrigin + performance.now()) * 1000);
}

/** Name and version of a package of the peer whose `import.meta.url` this is. */
export function installed(peer, name) {
  return `${name} ${JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, peer))).version}`;
}
