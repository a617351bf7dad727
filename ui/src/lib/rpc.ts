/** The window's only way to the bridge, and the only importer of the Tauri API: one function per command. */
import { Channel, invoke } from "@tauri-apps/api/core";

import type {
  ActivityDay,
  ActivityExport,
  ActivityFilter,
  ActivityPage,
  ApiError,
  ApiMode,
  AskerView,
  CallAnswer,
  ClientView,
  ConnectorDetail,
  ConnectorView,
  ExportFormat,
  LogPage,
  Paste,
  RedirectKind,
  RuleDraft,
  Scope,
  SignInOutcome,
  Snapshot,
  WalkInPolicy,
} from "./bridge";
import type { RuleView } from "./rule";

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

export type CallReply = "once" | "until_quit" | "deny" | "block";

/** The version of a package that a connector's command would run at present; `problem` says why it is not known. */
export type PackageVersions = { package: string; latest: string | null; problem: string | null };

/** What the person decides of an assistant that asks to be paired. */
export type Pairing = {
  /** The six digits that it shows. */
  code: string;
  scopes: Scope[];
  /** The connectors it sees; null = all. */
  servers: string[] | null;
  /** Unix milliseconds; null = it stays. */
  expiresAt: number | null;
  asksItself: boolean;
};

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
  /** The program that an entry names and that is not found on this computer. */
  missingProgram(entry: string): Promise<string | null>;
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
  /** `content` is the JSON text of a form's values; null without a form. Of all questions but those about a call. */
  answerApproval(id: string, answer: "approve" | "deny", content: string | null): Promise<void>;
  /** Answers the question about a call, and with `alsoSame` those that ask for exactly the same. */
  answerCall(id: string, answer: CallReply, alsoSame: boolean): Promise<void>;
  /** What a rule that covers this question would be. */
  draftRule(id: string): Promise<RuleDraft>;
  /** Makes the rule, and answers the question with yes. `rule` is the JSON text of a {@link RuleDraft}. */
  alwaysAllow(id: string, rule: string): Promise<void>;
  extendApproval(id: string): Promise<void>;
  /** Whoever asks this may not ask for an hour. */
  stopAsking(id: string): Promise<void>;
  /** `caller` is the id of a muted one. */
  letAsk(caller: string): Promise<void>;
  /** The same call of the same caller goes once without asking, within the next ten minutes. */
  allowNextTime(id: string): Promise<void>;
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
  /** `ids` are those of launch reviews, `keep` those of rules that go on for them. */
  approveLaunches(ids: string[], keep: string[]): Promise<void>;
  /** Rules that sleep go on, or are withdrawn. */
  answerAsleep(id: string, keep: boolean): Promise<void>;
  /** Turns the connector off instead. */
  keepBlocked(id: string): Promise<void>;
  /** Looks a package up where it comes from. */
  versionsOf(server: string): Promise<PackageVersions>;
  /** Writes this version into the connector's command. */
  useVersion(server: string, version: string): Promise<void>;
  approveTools(server: string, versions: { tool: string; version: string }[]): Promise<void>;
  keepToolBlocked(server: string, tool: string, version: string): Promise<void>;
  approvePrompt(server: string, prompt: string, version: string): Promise<void>;
  keepPromptBlocked(server: string, prompt: string, version: string): Promise<void>;
  approveInstructions(server: string, version: string): Promise<void>;
  /** This version is not shown again, and assistants do not get it. */
  keepInstructionsWithheld(server: string, version: string): Promise<void>;
  answerProposal(id: string, answer: "approve" | "decline"): Promise<void>;
  rules(): Promise<RuleView[]>;
  /** `rule` is the JSON text of a whole rule; what a draft says of it is taken, the rest stays. */
  saveRule(rule: string): Promise<void>;
  withdrawRule(id: string): Promise<void>;
  clients(): Promise<ClientView[]>;
  /** `change` is the JSON text of those members of a client's view that are to be others. */
  changeClient(id: string, change: string): Promise<void>;
  revokeClient(id: string): Promise<void>;
  /** For two minutes an assistant may ask to be paired. */
  openPairing(): Promise<void>;
  closePairing(): Promise<void>;
  /** Turns whoever asked away; others may ask in the time that is left. */
  turnAway(id: string): Promise<void>;
  answerPairing(id: string, pairing: Pairing): Promise<void>;
  /** Programs without a token that do their own asking. */
  askers(): Promise<AskerView[]>;
  /** Origins of the web pages that may use the API. */
  pages(): Promise<string[]>;
  setPage(origin: string, on: boolean): Promise<void>;
  setAsker(path: string, script: string | null, on: boolean): Promise<void>;
  setApiMode(mode: ApiMode): Promise<void>;
  setWalkIn(policy: WalkInPolicy): Promise<void>;
  pauseAll(on: boolean): Promise<void>;
  /** Ends a pause. */
  resume(server: string): Promise<void>;
  /** What assistants may do without asking; `tools` counts with `these` only. */
  choose(server: string, choice: "look_up" | "nothing" | "these", tools: string[]): Promise<void>;
  settings(): Promise<{ theme: Theme }>;
  setTheme(theme: Theme): Promise<void>;
}

export const rpc: Rpc = {
  watch: (onSnapshot) => call("watch", { channel: channel(onSnapshot) }),
  routes: (onRoute) => call("routes", { channel: channel(onRoute) }),
  opening: () => call("opening"),
  connector: (id) => call("connector", { id }),
  propose: (text) => call("propose", { text }),
  missingProgram: (entry) => call("missing_program", { entry }),
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
  answerCall: (id, answer, alsoSame) => call("answer_call", { id, answer, alsoSame }),
  draftRule: (id) => call("draft_rule", { id }),
  alwaysAllow: (id, rule) => call("always_allow", { id, rule }),
  extendApproval: (id) => call("extend_approval", { id }),
  stopAsking: (id) => call("stop_asking", { id }),
  letAsk: (caller) => call("let_ask", { caller }),
  allowNextTime: (id) => call("allow_next_time", { id }),
  openApprovalUrl: (id) => call("open_approval_url", { id }),
  activity: (filter, { before = null, after = null }: { before?: number | null; after?: number | null }, limit) =>
    call("activity", { filter, before, after, limit }),
  activityDays: (days, offsetMinutes) => call("activity_days", { days, offsetMinutes }),
  exportActivity: (filter, format) => call("export_activity", { filter, format }),
  watchActivity: (onNews) => call("watch_activity", { channel: channel(onNews) }),
  approveLaunches: (ids, keep) => call("approve_launches", { ids, keep }),
  answerAsleep: (id, keep) => call("answer_asleep", { id, keep }),
  keepBlocked: (id) => call("keep_blocked", { id }),
  versionsOf: (server) => call("versions_of", { server }),
  useVersion: (server, version) => call("use_version", { server, version }),
  approveTools: (server, versions) => call("approve_tools", { server, versions }),
  keepToolBlocked: (server, tool, version) => call("keep_tool_blocked", { server, tool, version }),
  approvePrompt: (server, prompt, version) => call("approve_prompt", { server, prompt, version }),
  keepPromptBlocked: (server, prompt, version) => call("keep_prompt_blocked", { server, prompt, version }),
  approveInstructions: (server, version) => call("approve_instructions", { server, version }),
  keepInstructionsWithheld: (server, version) => call("keep_instructions_withheld", { server, version }),
  answerProposal: (id, answer) => call("answer_proposal", { id, answer }),
  rules: () => call("rules"),
  saveRule: (rule) => call("save_rule", { rule }),
  withdrawRule: (id) => call("withdraw_rule", { id }),
  clients: () => call("clients"),
  changeClient: (id, change) => call("change_client", { id, change }),
  revokeClient: (id) => call("revoke_client", { id }),
  openPairing: () => call("open_pairing"),
  closePairing: () => call("close_pairing"),
  turnAway: (id) => call("turn_away", { id }),
  answerPairing: (id, pairing) => call("answer_pairing", { id, ...pairing }),
  askers: () => call("askers"),
  pages: () => call("pages"),
  setPage: (origin, on) => call("set_page", { origin, on }),
  setAsker: (path, script, on) => call("set_asker", { path, script, on }),
  setApiMode: (mode) => call("set_api_mode", { mode }),
  setWalkIn: (policy) => call("set_walk_in", { policy }),
  pauseAll: (on) => call("pause_all", { on }),
  resume: (server) => call("resume", { server }),
  choose: (server, choice, tools) => call("choose", { server, choice, tools }),
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
