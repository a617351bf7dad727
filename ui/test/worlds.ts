/** Data for tests and the preview. */
import type {
  ActivityEntry,
  ApprovalView,
  CallAnswer,
  ConnectorView,
  SignInStage,
  SignInView,
  Status,
  ToolView,
} from "../src/lib/bridge";
import type { World } from "./rpc-fixture";

export const now = Date.now();

export function connector(id: string, over: Partial<ConnectorView> = {}): ConnectorView {
  return {
    id,
    name: id,
    description: "",
    transport: "stdio",
    summary: `npx -y ${id}`,
    enabled: true,
    status: "connected",
    tools: 3,
    auth: { state: "none" },
    connection: {
      generation: 1,
      sequence: 4,
      since: now - 3_600_000,
      observed_at: now - 4_000,
      era: "legacy",
      protocol: "2025-11-25",
      retry: null,
      readiness: "ready",
    },
    ...over,
  };
}

export function tool(id: string, name: string, input_schema: JsonValue, over: Partial<ToolView> = {}): ToolView {
  return {
    name,
    exposed_name: `mcp__${id}__${name}`,
    title: null,
    description: `What ${name} does.`,
    input_schema,
    hints: { read_only: null, destructive: null, idempotent: null, open_world: null },
    enabled: true,
    auto_approved: false,
    ...over,
  };
}

export function answer(over: Partial<CallAnswer> = {}): CallAnswer {
  return {
    ok: true,
    content: [{ type: "text", text: "Wrote 8 bytes to notes/today.md" }],
    text: "Wrote 8 bytes to notes/today.md",
    server: "files",
    tool: "write_file",
    duration_ms: 3,
    truncated: false,
    ...over,
  };
}

export function world(connectors: ConnectorView[], over: Partial<World> = {}): World {
  return {
    snapshot: {
      version: "0.1.0",
      api: { state: "listening", port: 7771 },
      config: { path: "/home/ada/.neuron/connectors.json", is_default: false, notices: [] },
      connectors,
      keychain: { kept_in: "keychain", state: "unused" },
      sign_ins: [],
      approvals: [],
    },
    tools: {},
    entries: {},
    secrets: {},
    rejected: [],
    log: [],
    activity: [],
    days: [],
    opening: { reason: "asked", route: null },
    theme: "system",
    propose: () => ({ proposals: [], problem: null }),
    answer: () => answer(),
    signIn: null,
    pasted: { server: null, outcome: "invalid_state", message: "No sign-in waits for this answer." },
    refusal: null,
    ...over,
  };
}

export function signIn(stage: SignInStage, over: Partial<SignInView> = {}): SignInView {
  return {
    server: "notion",
    sign_in_at: "login.notion.com",
    access_goes_to: "mcp.notion.com",
    since: Date.now(),
    stage,
    ...over,
  };
}

export const waitingStage: SignInStage & { stage: "waiting" } = {
  stage: "waiting",
  url: "https://login.notion.com/authorize?response_type=code&state=x",
  redirect: "deep-link",
  other_way: "loopback",
  scopes: ["read", "write"],
  expires_at: now + 600_000,
};

export function question(id: string, over: Partial<ApprovalView> = {}): ApprovalView {
  return {
    id,
    state: "waiting",
    server: "postgres",
    server_name: "Postgres (staging)",
    asked_at: now,
    expires_at: now + 50_000,
    question: {
      kind: "elicitation",
      asks: {
        mode: "form",
        message: "Which of the two tables do you mean?",
        schema: {
          type: "object",
          properties: {
            table: { type: "string", title: "Table", enum: ["users", "users_old"], enumNames: ["Users", "Old users"] },
            limit: { type: "integer", title: "At most", description: "Rows to read." },
            archived: { type: "boolean", title: "With archived rows" },
          },
          required: ["table"],
        },
        defaults: { table: "users_old", limit: 20 },
      },
    },
    ...over,
  };
}

export function page(id: string, url: string, host: string, warning?: string): ApprovalView {
  const message = "Confirm the access on our page.";
  const asks = { mode: "url" as const, message, url, host, ...(warning === undefined ? {} : { warning }) };
  return question(id, { question: { kind: "elicitation", asks } });
}

const minute = 60_000;

export const ordinary: ConnectorView[] = [
  connector("files", {
    name: "Files",
    description: "Read and write in one folder.",
    summary: "neuron-connectd files ~/neuron-connectd-sandbox",
    tools: 14,
    used_at: now - 2 * minute,
    connection: { ...connector("files").connection, era: "modern", protocol: "2026-07-28" },
  }),
  connector("linear", {
    name: "Linear",
    transport: "http",
    summary: "https://mcp.linear.app/mcp",
    status: "sleeping",
    tools: 23,
    used_at: now - 26 * 60 * minute,
  }),
  connector("notion", {
    name: "Notion",
    transport: "http",
    summary: "https://mcp.notion.com/mcp",
    status: "needs_sign_in",
    tools: 12,
    action: "sign_in",
    error: "Notion asks for a sign-in before it answers.",
    auth: { state: "needs-sign-in" },
  }),
  connector("postgres", {
    name: "Postgres (staging)",
    summary: "npx -y @scope/server-postgres@1.4.2",
    status: "error",
    tools: 0,
    action: "reconnect",
    error: "The program ended with exit code 1 before it answered. Its last lines say why.",
    error_detail:
      'npm notice new version available\nError: password authentication failed for user "app"\n    at Parser.parseErrorMessage',
  }),
  connector("sentry", {
    name: "Sentry",
    transport: "http",
    summary: "https://mcp.sentry.dev/mcp",
    status: "retrying",
    tools: 9,
    action: "reconnect",
    error: "mcp.sentry.dev answered 503 Service Unavailable.",
    connection: {
      ...connector("sentry").connection,
      retry: { number: 3, max: 5, scheduled_at: now, next_attempt_at: now + 8_000, delay_ms: 8_000 },
    },
  }),
  connector("browser", {
    name: "Browser",
    summary: "npx -y @playwright/mcp@0.0.41",
    status: "connecting",
    progress: "Still installing… (12 s)",
    tools: 21,
  }),
  connector("git.hub", { name: "GitHub", enabled: false, status: "disabled", tools: 3, action: "enable" }),
  connector("old one", {
    name: "old one",
    status: "invalid",
    tools: 0,
    action: "edit",
    error: '"old one" cannot be a connector\'s id: use letters, digits, ".", "_" and "-", for example "old-one".',
  }),
];

export const everyStatus: Status[] = [
  "disabled",
  "sleeping",
  "connecting",
  "connected",
  "retrying",
  "needs_sign_in",
  "needs_secret",
  "error",
  "invalid",
];

export const fileTools: ToolView[] = [
  tool(
    "files",
    "list_directory",
    {
      type: "object",
      properties: { path: { type: "string", description: "Folder, relative to the sandbox." } },
      required: ["path"],
    },
    { hints: { read_only: true, destructive: null, idempotent: true, open_world: false }, auto_approved: true },
  ),
  tool(
    "files",
    "write_file",
    {
      type: "object",
      properties: {
        path: { type: "string", description: "File, relative to the sandbox. Missing folders are made." },
        content: { type: "string", description: "The whole new content." },
        mode: { enum: ["replace", "append"], default: "replace" },
        backup: { type: "boolean", description: "Keep the version before." },
        limit: { type: "integer", description: "At most this many bytes." },
        tags: { type: "array", items: { type: "string" } },
        options: {
          type: "object",
          description: "How it is written.",
          properties: { encoding: { type: "string", default: "utf-8" }, ratio: { type: "number" } },
        },
        extra: { type: "object", description: "Anything else." },
      },
      required: ["path", "content"],
    },
    {
      description: "Create a file or replace its whole content.\nUse edit_file for small changes.",
      hints: { read_only: false, destructive: true, idempotent: true, open_world: false },
    },
  ),
  ...["read_text_file", "edit_file", "move_file", "search_files", "get_file_info", "directory_tree"].map((name) =>
    tool("files", name, { type: "object", properties: { path: { type: "string" } }, required: ["path"] }),
  ),
  tool("files", "list_allowed_directories", { type: "object" }, { enabled: false }),
];

/** A call that went well. */
export function entry(id: number, over: Partial<ActivityEntry> = {}): ActivityEntry {
  return {
    id,
    at: now - 60_000,
    who: { kind: "walk_in" },
    what: {
      kind: "call",
      server: "files",
      tool: "read_file",
      arguments: { kept: "shape", value: { path: "text(12)" } },
    },
    outcome: "ok",
    duration_ms: 3,
    allowed_by: { by: "nobody" },
    warnings: false,
    ...over,
  };
}
