/** The window's only way to the bridge, and the only importer of the Tauri API: one function per command. */
import { Channel, invoke } from "@tauri-apps/api/core";

import type {
  ActivityDay,
  ActivityExport,
  ActivityFilter,
  ActivityPage,
  ApiError,
  CallAnswer,
  ConnectorDetail,
  ConnectorView,
  ExportFormat,
  LogPage,
  Paste,
  RedirectKind,
  SignInOutcome,
  Snapshot,
} from "./bridge";

export type Theme = "system" | "light" | "dark";

/** Why this window opened, and where it is to start (such as `#/add`). */
export type Opening = { reason: "asked" | "first_run" | "no_tray_host"; route: string | null };

/** What the person decided before a sign-in begins; null where nothing was asked. */
export type SignInAsk = {
  /** The issuer that they ticked. */
  acceptIssuer: string | null;
  redirect: RedirectKind | null;
};

/** What a pasted address came to; `server` is null where no sign-in waited for it. */
export type PastedSignIn = { server: string | null; outcome: SignInOutcome; message: string };

/** Every function rejects with an {@link ApiError}. */
export interface Rpc {
  /** Subscribes for the life of the window; the first message is the present snapshot. */
  watch(onSnapshot: (snapshot: Snapshot) => void): Promise<void>;
  /** Subscribes to places the tray asks this window to show, such as `#/connectors/github`. */
  routes(onRoute: (route: string) => void): Promise<void>;
  opening(): Promise<Opening>;
  connector(id: string): Promise<ConnectorDetail>;
  /** What a pasted text means; adds nothing. */
  propose(text: string): Promise<Paste>;
  /** `entry` is JSON text, as it will stand in the file. */
  add(id: string, entry: string): Promise<ConnectorView>;
  replace(id: string, entry: string): Promise<ConnectorView>;
  setEnabled(id: string, enabled: boolean): Promise<void>;
  setToolEnabled(id: string, tool: string, enabled: boolean): Promise<void>;
  remove(id: string): Promise<void>;
  /** Waits for one attempt; `verified` says whether it succeeded. */
  reconnect(id: string): Promise<{ verified: boolean }>;
  /** Gives up the attempts to connect; how the connector stands then. */
  stopTrying(id: string): Promise<ConnectorView>;
  /** `name` is the exposed name, `input` JSON text; `ticket` is a name for {@link Rpc.cancelTry}. */
  tryTool(ticket: string, name: string, input: string): Promise<CallAnswer>;
  cancelTry(ticket: string): Promise<void>;
  /**
   * At most `lines` lines of a log: the newest, or those `after` a place, for which it waits up to half a minute.
   * `ticket` is a name for {@link Rpc.cancelLog}.
   */
  logTail(ticket: string, id: string, lines: number, after: string | null): Promise<LogPage>;
  cancelLog(ticket: string): Promise<void>;
  /** `name` is null for the token itself. The only way of a secret out of this window; none ever comes in. */
  setSecret(id: string, name: string | null, value: string): Promise<void>;
  forgetSecret(id: string, name: string | null): Promise<void>;
  keepUntilQuit(): Promise<void>;
  lookAtKeychain(): Promise<void>;
  /** Begins a sign-in; the program opens the browser itself. How far it is shows in the snapshot. */
  signIn(id: string, ask: SignInAsk): Promise<void>;
  cancelSignIn(id: string): Promise<void>;
  openSignInAgain(id: string): Promise<void>;
  /** Takes the address on which the browser ended. */
  pasteSignIn(address: string): Promise<PastedSignIn>;
  signOut(id: string): Promise<void>;
  /** `content` is the JSON text of a form's values; null without a form. */
  answerApproval(id: string, answer: "approve" | "deny", content: string | null): Promise<void>;
  extendApproval(id: string): Promise<void>;
  /** Opens the page that this question is about in the browser. */
  openApprovalUrl(id: string): Promise<void>;
  /** What happened: the newest `limit` entries; those `before` an id; or, the oldest first, those `after` one. */
  activity(filter: ActivityFilter, page: { before?: number; after?: number }, limit: number): Promise<ActivityPage>;
  /** The last `days` days, the oldest first; they begin at midnight here, `offsetMinutes` ahead of UTC. */
  activityDays(days: number, offsetMinutes: number): Promise<ActivityDay[]>;
  /** Writes a file into the folder for downloads. */
  exportActivity(filter: ActivityFilter, format: ExportFormat): Promise<ActivityExport>;
  /** Told when there are new entries; one listener at a time, for the life of the window. */
  watchActivity(onNews: () => void): Promise<void>;
  settings(): Promise<{ theme: Theme }>;
  setTheme(theme: Theme): Promise<void>;
}

export const rpc: Rpc = {
  watch: (onSnapshot) => call("watch", { channel: channel(onSnapshot) }),
  routes: (onRoute) => call("routes", { channel: channel(onRoute) }),
  opening: () => call("opening"),
  connector: (id) => call("connector", { id }),
  propose: (text) => call("propose", { text }),
  add: (id, entry) => call("add", { id, entry }),
  replace: (id, entry) => call("replace", { id, entry }),
  setEnabled: (id, enabled) => call("set_enabled", { id, enabled }),
  setToolEnabled: (id, tool, enabled) => call("set_tool_enabled", { id, tool, enabled }),
  remove: (id) => call("remove", { id }),
  reconnect: (id) => call("reconnect", { id }),
  stopTrying: (id) => call("stop_trying", { id }),
  tryTool: (ticket, name, input) => call("try_tool", { ticket, name, input }),
  cancelTry: (ticket) => call("cancel_try", { ticket }),
  logTail: (ticket, id, lines, after) => call("log_tail", { ticket, id, lines, after }),
  cancelLog: (ticket) => call("cancel_log", { ticket }),
  setSecret: (id, name, value) => call("set_secret", { id, name, value }),
  forgetSecret: (id, name) => call("forget_secret", { id, name }),
  keepUntilQuit: () => call("keep_until_quit"),
  lookAtKeychain: () => call("look_at_keychain"),
  signIn: (id, ask) => call("sign_in", { id, ...ask }),
  cancelSignIn: (id) => call("cancel_sign_in", { id }),
  openSignInAgain: (id) => call("open_sign_in_again", { id }),
  pasteSignIn: (address) => call("paste_sign_in", { address }),
  signOut: (id) => call("sign_out", { id }),
  answerApproval: (id, answer, content) => call("answer_approval", { id, answer, content }),
  extendApproval: (id) => call("extend_approval", { id }),
  openApprovalUrl: (id) => call("open_approval_url", { id }),
  activity: (filter, { before = null, after = null }: { before?: number | null; after?: number | null }, limit) =>
    call("activity", { filter, before, after, limit }),
  activityDays: (days, offsetMinutes) => call("activity_days", { days, offsetMinutes }),
  exportActivity: (filter, format) => call("export_activity", { filter, format }),
  watchActivity: (onNews) => call("watch_activity", { channel: channel(onNews) }),
  settings: () => call("settings"),
  setTheme: (theme) => call("set_theme", { theme }),
};

async function call<T>(command: string, args?: Record<string, unknown>): Promise<T> {
  try {
    return await invoke<T>(command, args);
  } catch (cause) {
    throw asApiError(cause);
  }
}

function channel<T>(onMessage: (message: T) => void): Channel<T> {
  const channel = new Channel<T>();
  channel.onmessage = onMessage;
  return channel;
}

/** Tauri itself rejects with a plain text, for example when a permission is missing. */
function asApiError(cause: unknown): ApiError {
  if (typeof cause === "object" && cause !== null && "code" in cause && "error" in cause) return cause as ApiError;
  return { code: "internal", error: String(cause) };
}
