/**
 * Mounts the window over a fixture, chosen by `?world=` and `?theme=`, for looking at it in a browser. `?press=` names a
 * button to press once it is awake, `?paste=` a text to paste on the screen that adds.
 */
import "./freeze";
import "../src/tokens.css";
import "../src/base.css";
import { mount } from "svelte";

import App from "../src/App.svelte";
import type { ConnectorView, KeychainState, SignInStage, SignInView } from "../src/lib/bridge";
import type { Theme } from "../src/lib/rpc";
import { trustWorlds } from "./preview-trust";
import { wakeMs } from "../src/lib/question";
import { setWorld, type World } from "./rpc-fixture";
import {
  answer,
  asking,
  connector,
  entry,
  everyStatus,
  fileTools,
  form,
  now,
  ordinary,
  page,
  question,
  signIn,
  tool,
  waitingStage,
  world,
} from "./worlds";

const dot =
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAYAAAAf8/9hAAAAJ0lEQVR4nGNgGAUMDAwM/0nEWDQwUdMVRBswaiBRBowaSJQBo4EAAJ0PAg9e9Yf0AAAAAElFTkSuQmCC";

const long = "averyveryveryveryverylongnamewithoutanybreakthatgoesonandonandonandonandonandon";

const common: Partial<World> = {
  tools: { files: fileTools, filesystem: fileTools },
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
    if (text.startsWith("npx") || text.startsWith("hello")) {
      const [command, ...args] = text.split(/\s+/);
      const entry = JSON.stringify({ transport: "stdio", command, args, env: { API_KEY: "YOUR_API_KEY" } }, null, 2);
      const notes = ["No fixed version is named: a different program may run tomorrow."];
      const proposal = { id: "files", entry, summary: text, notes, problem: null };
      return { proposals: [proposal, { ...proposal, id: "weather" }], problem: null };
    }
    return { proposals: [], problem: "This is neither an address, nor a command line, nor JSON with servers in it." };
  },
  missingProgram: (entry) => (entry.includes("hello") ? "hello" : null),
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

/** A connector that is in the middle of a sign-in. */
function signingIn(stage: SignInStage, over: Partial<SignInView> = {}, name = "Notion"): World {
  const notion = ordinary.find(({ id }) => id === "notion")!;
  const made = world([...ordinary.filter(({ id }) => id !== "notion"), { ...notion, name }], {
    ...common,
    entries: { notion: '{ "transport": "http", "url": "https://mcp.notion.com/mcp" }' },
  });
  made.snapshot.sign_ins = [signIn(stage, over)];
  return made;
}

function notionIs(over: Partial<ConnectorView>): World {
  return world(
    ordinary.map((one) => (one.id === "notion" ? { ...one, ...over } : one)),
    {
      ...common,
      entries: {
        notion:
          '{ "url": "https://mcp.notion.com/mcp", "auth": "token", "headers": { "X-Team": "${secret:TEAM_KEY}" } }',
      },
      secrets: {
        notion: [
          { name: null, set: true, withheld: false },
          { name: "TEAM_KEY", set: false, withheld: true },
          { name: "PATH_KEY", set: false, withheld: false },
        ],
      },
    },
  );
}

function keychainIs(state: KeychainState): World {
  const made = notionIs({
    status: "keychain_unavailable",
    action: "unlock_keychain",
    error: "The keychain is locked.",
  });
  made.snapshot.keychain = { kept_in: "keychain", state, message: "org.freedesktop.Secret.Error.IsBroken" };
  return made;
}

const issuer = "https://login.example.org/tenants/42";

const signIns: Record<string, () => World> = {
  "sign-in": () => notionIs({}),
  "sign-in-more": () =>
    notionIs({
      error: "The server wants you to allow more (write). Sign in once more to allow it.",
      auth: { state: "needs-sign-in", scopes: ["read", "write:pages"] },
    }),
  preparing: () => signingIn({ stage: "preparing" }),
  confirm: () => signingIn({ stage: "confirm", issuer, changed: false }, { sign_in_at: "login.example.org" }),
  "confirm-changed": () => signingIn({ stage: "confirm", issuer, changed: true }, { sign_in_at: "login.example.org" }),
  client: () =>
    signingIn({
      stage: "needs_client",
      issuer,
      redirect_uri: "http://127.0.0.1:7771/mcp/oauth/callback",
    }),
  "no-pkce": () => signingIn({ stage: "no_pkce", issuer }),
  waiting: () => signingIn(waitingStage),
  "waiting-late": () => signingIn(waitingStage, { since: now - 30_000 }),
  "waiting-long": () =>
    signingIn(
      { ...waitingStage, scopes: Array.from({ length: 30 }, (_, index) => `scope:${index}:${long.slice(0, 30)}`) },
      { since: now - 30_000, sign_in_at: `${long}.example.com`, access_goes_to: `${long}.example.com:8443` },
      long,
    ),
  finishing: () => signingIn({ stage: "finishing" }),
  denied: () =>
    signingIn({
      stage: "failed",
      outcome: "denied",
      message: "login.notion.com says: access_denied. You, or the people who run it, turned this down.",
    }),
  expired: () =>
    signingIn({ stage: "failed", outcome: "expired", message: "The ten minutes for it were over. Sign in again." }),
  "signed-in"() {
    const { error: _error, action: _action, ...notion } = ordinary.find(({ id }) => id === "notion")!;
    const auth = { state: "signed-in" as const, scopes: ["read", "write:pages"] };
    return world([{ ...notion, status: "connected", auth }], common);
  },
  key: () =>
    notionIs({
      status: "needs_secret",
      action: "set_secret",
      error: "The server did not accept this token (HTTP status 401). Enter it again, or get a new one there.",
    }),
  locked: () => keychainIs("locked"),
  absent: () => keychainIs("absent"),
  slow: () => keychainIs("slow"),
  refused: () => keychainIs("refused"),
  question() {
    const made = world(ordinary, common);
    made.snapshot.approvals = [question("q1"), page("q2", "https://example.com/consent?x=1", "example.com")];
    return made;
  },
  page() {
    const made = world(ordinary, common);
    made.snapshot.approvals = [
      page(
        "q2",
        "https://xn--pple-43d.com/consent?session=9f2d&next=https%3A%2F%2Fapple.com",
        "xn--pple-43d.com",
        "The name of this page has letters that look like others. Its true name is xn--pple-43d.com.",
      ),
    ];
    return made;
  },
  "question-long"() {
    const made = world(ordinary, common);
    const message = `${long} \u202e<b>bold</b> ${long}\n`.repeat(12);
    made.snapshot.approvals = [asking("q1", { ...form, message }, { server_name: long })];
    return made;
  },
};

function busy(): World {
  const made = world(ordinary, common);
  const shape = { path: "text(28)", content: "text(38)" };
  const minute = 60_000;
  made.activity = [
    entry(12, {
      at: now - minute,
      who: {
        kind: "client",
        client_name: "Claude Code",
        program_name: "node",
        program_path: "/usr/bin/node",
        pid: 4242,
      },
      what: { kind: "call", server: "files", tool: "write_file", arguments: { kept: "shape", value: shape } },
      allowed_by: { by: "person", answer: "once" },
    }),
    entry(11, {
      at: now - 2 * minute,
      who: { kind: "walk_in", program_name: "Cursor", pid: 777 },
      what: {
        kind: "call",
        server: "postgres",
        tool: "query",
        arguments: { kept: "shape", value: { sql: "text(61)", limit: "number", tables: "list(3)", dry: true } },
      },
      outcome: "failed",
      code: "tool_error",
      duration_ms: 1_412,
      allowed_by: { by: "rule", rule: "r1", name: "read Postgres" },
      warnings: true,
    }),
    entry(10, {
      at: now - 9 * minute,
      who: { kind: "walk_in", program_name: "python3", program_path: "/usr/bin/python3", pid: 911 },
      what: {
        kind: "call",
        server: "postgres",
        tool: "drop",
        arguments: { kept: "shape", value: { sql: "text(61)" } },
      },
      outcome: "denied",
      code: "tool_changed",
      duration_ms: 0,
      allowed_by: { by: "nobody" },
    }),
    entry(9, { at: now - 15 * minute, who: { kind: "owner" }, what: { kind: "sign_in", server: "notion" } }),
    entry(8, {
      at: now - 16 * minute,
      who: { kind: "owner" },
      what: { kind: "change", server: "notion", change: "secret_set", subject: "TEAM_KEY" },
      allowed_by: { by: "owner" },
    }),
    entry(7, {
      at: now - 40 * minute,
      what: { kind: "read", server: "files", uri: `file:///home/p/${long}${long}/notes.md` },
      outcome: "cancelled",
      duration_ms: 61_000,
    }),
    entry(6, {
      at: now - 27 * 60 * minute,
      who: { kind: "itself" },
      what: { kind: "change", server: "old-one", change: "file_removed", subject: null },
    }),
    entry(5, { at: now - 30 * 60 * minute, what: { kind: "lost", entries: 12 }, who: { kind: "itself" } }),
  ];
  made.days = Array.from({ length: 14 }, (_, index) => ({
    day: `2026-11-${String(17 + index).padStart(2, "0")}`,
    calls: [4, 0, 31, 44, 12, 0, 2, 18, 25, 60, 33, 9, 51, 27][index] ?? 0,
    failures: [0, 0, 3, 0, 1, 0, 2, 0, 0, 7, 0, 0, 4, 1][index] ?? 0,
  }));
  return made;
}

const worlds: Record<string, () => World> = {
  ...signIns,
  busy,
  ...trustWorlds(common, long),
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

const pasted = asked.get("paste");
if (pasted !== null) {
  setTimeout(() => {
    const field = document.querySelector<HTMLTextAreaElement>("#paste, form textarea");
    if (!field) return;
    field.value = pasted;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }, wakeMs);
}

const press = asked.get("press");
if (press !== null) {
  setTimeout(() => {
    [...document.querySelectorAll("button")].find((one) => one.textContent?.trim() === press)?.click();
  }, 2 * wakeMs);
}
