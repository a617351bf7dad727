import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  // Relative, because the window loads the files from its own scheme.
  base: "./",
  plugins: [svelte()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    // WebKitGTK of Debian 12 and the oldest supported macOS.
    target: ["es2021", "safari15"],
    // Both would put something inline, which the content security policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { host: "127.0.0.1", port: 1420, strictPort: true },
});
