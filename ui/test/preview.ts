/** Mounts the window over a fixture, chosen by `?world=` and `?theme=`, for looking at it in a browser. */
import "./freeze";
import "../src/tokens.css";
import "../src/base.css";
import { mount } from "svelte";

import App from "../src/App.svelte";
import type { Theme } from "../src/lib/rpc";
import { setWorld, type World } from "./rpc-fixture";
import { answer, connector, everyStatus, fileTools, ordinary, tool, world } from "./worlds";

const dot =
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAYAAAAf8/9hAAAAJ0lEQVR4nGNgGAUMDAwM/0nEWDQwUdMVRBswaiBRBowaSJQBo4EAAJ0PAg9e9Yf0AAAAAElFTkSuQmCC";

const long = "averyveryveryveryverylongnamewithoutanybreakthatgoesonandonandonandonandonandon";

const common: Partial<World> = {
  tools: { files: fileTools, filesystem: [tool("filesystem", "list_allowed_directories", { type: "object" })] },
  entries: {
    files:
      '{\n  // the one folder\n  "transport": "stdio",\n  "command": "neuron-connectd",\n  "args": ["files", "~/neuron-connectd-sandbox"],\n}',
  },
  rejected: [{ name: "#3", reason: "It has no name, so nobody could call it." }],
  log: Array.from(
    { length: 80 },
    (_, line) =>
      `2026-11-30T09:14:${String(line % 60).padStart(2, "0")}.000Z ${line % 20 === 0 ? "[session] connected to files over protocol 2025-11-25" : `served request ${line}`}`,
  ),
  propose(text) {
    if (text.startsWith("http")) {
      const entry = JSON.stringify({ transport: "http", url: text }, null, 2);
      return { proposals: [{ id: "example", entry, summary: text, notes: [], problem: null }], problem: null };
    }
    if (text.startsWith("npx")) {
      const [command, ...args] = text.split(/\s+/);
      const entry = JSON.stringify({ transport: "stdio", command, args, env: { API_KEY: "YOUR_API_KEY" } }, null, 2);
      const notes = ["No fixed version is named: a different program may run tomorrow."];
      const proposal = { id: "files", entry, summary: text, notes, problem: null };
      return { proposals: [proposal, { ...proposal, id: "weather" }], problem: null };
    }
    return { proposals: [], problem: "This is neither an address, nor a command line, nor JSON with servers in it." };
  },
  answer(name, input) {
    if (name.endsWith("list_directory")) return "never";
    if (name.endsWith("edit_file")) {
      return { code: "upstream_timeout", error: "Files did not answer within 600 s. Try again, or reconnect it." };
    }
    return answer({
      content: [
        { type: "text", text: `Wrote 8 bytes to notes/today.md\n<img src=x onerror=alert(1)> ${input}` },
        { type: "image", data: dot, mimeType: "image/png" },
        { type: "audio", data: "UklGRg==", mimeType: "audio/wav" },
        { type: "resource_link", uri: "file:///notes/today.md", name: "today.md", description: "The file" },
        { type: "mystery", value: 1 },
      ],
      structured: { bytes: 8 },
      truncated: true,
    });
  },
};

const worlds: Record<string, () => World> = {
  ordinary: () => world(ordinary, common),
  empty: () => world([], common),
  states: () =>
    world(
      everyStatus.map((status) => connector(status, { status, enabled: status !== "disabled" })),
      common,
    ),
  many: () =>
    world(
      Array.from({ length: 50 }, (_, index) => ({
        ...(ordinary[index % ordinary.length] ?? connector("x")),
        id: `connector-${index}`,
        name: `Connector ${index}`,
      })),
      common,
    ),
  long: () =>
    world(
      [
        connector(long.slice(0, 64), {
          name: long + long,
          summary: `npx ${long} ${long} ${long}`,
          status: "connected",
        }),
        connector("x", {
          name: `‮evil <img src=x onerror=alert(1)>`,
          summary: "https://example.com",
          error: `${long} <b>bold</b> ${long} ${long}`,
          status: "error",
          action: "reconnect",
          error_detail: `${long}${long}${long}`,
        }),
      ],
      {
        ...common,
        tools: {
          x: [
            tool(
              "x",
              long + long,
              { type: "object", properties: { [long]: { type: "string", description: long + long } } },
              { description: `${long} `.repeat(40) },
            ),
          ],
        },
      },
    ),
  problems() {
    const made = world(ordinary, common);
    made.snapshot.api = {
      state: "port_taken",
      port: 7771,
      message:
        "Port 7771 is held by node (pid 4242). Assistants cannot reach Neuron Connect until it lets go; trying again.",
    };
    made.snapshot.config.notices = [
      {
        level: "error",
        message: "connectors.json is not valid JSON: a comma is missing. The last good version stays in use.",
        line: 14,
        column: 7,
      },
      {
        level: "warning",
        message: '"alwaysAllow" is not known here and is ignored.',
        line: 9,
        column: 5,
        server: "postgres",
      },
    ];
    return made;
  },
  first() {
    const made = world(
      [
        connector("filesystem", {
          name: "Files",
          summary: "neuron-connectd files ~/neuron-connectd-sandbox",
          status: "sleeping",
          tools: 14,
        }),
      ],
      common,
    );
    made.snapshot.config.is_default = true;
    made.opening = { reason: "no_tray_host", route: null };
    return made;
  },
  refusing: () =>
    world(ordinary, {
      ...common,
      refusal: {
        code: "not_saved",
        error: "connectors.json could not be written: the disk is full. Nothing was changed.",
      },
    }),
};

const asked = new URLSearchParams(location.search);
setWorld({
  ...(worlds[asked.get("world") ?? "ordinary"] ?? worlds["ordinary"]!)(),
  theme: (asked.get("theme") ?? "system") as Theme,
});
if (asked.has("rtl")) document.documentElement.dir = "rtl";
const target = document.getElementById("app");
if (target) mount(App, { target });
