import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";

/** Replaces `src/lib/rpc.ts` by the typed fixture, in tests and in the preview only. */
export function fixtureRpc(): Plugin {
  const fixture = fileURLToPath(new URL("./rpc-fixture.ts", import.meta.url));
  return {
    name: "fixture-rpc",
    enforce: "pre",
    resolveId: (source) => (/\/rpc(\.ts)?$/.test(source) ? fixture : null),
  };
}
