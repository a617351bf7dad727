import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

import { fixtureRpc } from "./fixture-rpc-plugin";

/** The window's policy; the preview obeys it, so that a violation is seen here first. */
const contentSecurityPolicy = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "media-src 'self' data:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const here = fileURLToPath(new URL(".", import.meta.url));

export default defineConfig({
  root: here,
  base: "./",
  plugins: [svelte({ configFile: fileURLToPath(new URL("../svelte.config.js", import.meta.url)) }), fixtureRpc()],
  build: {
    outDir: fileURLToPath(new URL("../node_modules/.preview", import.meta.url)),
    emptyOutDir: true,
    rollupOptions: { input: fileURLToPath(new URL("preview.html", import.meta.url)) },
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { host: "127.0.0.1", port: 1421 },
  preview: { host: "127.0.0.1", port: 1421, headers: { "Content-Security-Policy": contentSecurityPolicy } },
});
