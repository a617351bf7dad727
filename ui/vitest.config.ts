import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

import { fixtureRpc } from "./test/fixture-rpc-plugin";

export default defineConfig({
  plugins: [svelte(), fixtureRpc()],
  // Without it the server build of Svelte would be loaded, which cannot mount.
  resolve: { conditions: ["browser"] },
  test: { environment: "happy-dom", include: ["test/**/*.test.ts"] },
});
