/** Stands in for `src/lib/rpc.ts` in tests and in the preview: the same type, over plain data in memory. */
import type {
  ActivityDay,
  ActivityEntry,
  ApiError,
  ApprovalView,
  AskerView,
  CallAnswer,
  ClientView,
  ConnectorDetail,
  ConnectorView,
  Need,
  Paste,
  Reviews,
  ToolsReview,
  RuleDraft,
  SecretView,
  SignInView,
  Snapshot,
  ToolView,
  TrustView,
} from "../src/lib/bridge";
import { isHeldBack } from "../src/lib/review";
import type { Opening, PackageVersions, PastedSignIn, Rpc, SignInAsk, Theme } from "../src/lib/rpc";
import type { RuleView } from "../src/lib/rule";

export type World = {
  snapshot: Snapshot;
  tools: Record<string, ToolView[]>;
  entries: Record<string, string>;
  secrets: Record<string, SecretView[]>;
  rejected: ConnectorDetail["rejected"];
  log: string[];
  /** The newest first. */
  activity: ActivityEntry[];
  days: ActivityDay[];
  opening: Opening;
  theme: Theme;
  propose: (text: string) => Paste;
  missingProgram: (entry: string) => string | null;
  answer: (name: string, input: string) => CallAnswer | ApiError | "never";
  /** How a sign-in stands once it was asked for; null where it is refused. */
  signIn: ((id: string, ask: SignInAsk) => SignInView) | null;
  pasted: PastedSignIn;
  /** What "Always allow…" begins with. */
  draft: RuleDraft;
  rules: RuleView[];
  clients: ClientView[];
  askers: AskerView[];
  pages: string[];
  versions: PackageVersions;
  /** Refuses every change where set. */
  refusal: ApiError | null;
};

export let world: World;
/** Every call, as `command arguments…`. */
export const calls: string[] = [];

let onSnapshot: (snapshot: Snapshot) => void = () => {};
const waiting = new Map<string, () => void>();
const logWaits = new Map<string, { come: () => void; reject: (cause: ApiError) => void }>();
let missedLines = false;

/** Adds lines to the log; whoever waits for them gets them. */
export function writeLog(lines: string[], missed = false): void {
  missedLines = missed;
  world.log = [...world.log, ...lines];
  for (const { come } of logWaits.values()) come();
  logWaits.clear();
}

/** How many wait for a line. */
export function logWaiters(): number {
  return logWaits.size;
}

let onNews: () => void = () => {};

/** Something happens. */
export function happen(...entries: ActivityEntry[]): void {
  world.activity = [...[...entries].reverse(), ...world.activity];
  onNews();
}

export function setWorld(next: World): void {
  world = next;
  calls.length = 0;
  logWaits.clear();
}

/** Changes the world and publishes a new snapshot. */
export function publish(change: (snapshot: Snapshot) => Snapshot): void {
  world.snapshot = change(world.snapshot);
  onSnapshot(derived(world.snapshot));
}

/** As the bridge says which connectors need the person; what a world says of one counts before that. */
function derived(snapshot: Snapshot): Snapshot {
  const needy = ["needs_sign_in", "needs_secret", "needs_review", "keychain_unavailable", "error", "invalid"];
  const found = snapshot.connectors.flatMap((connector): [string, Need][] => {
    if (needy.includes(connector.status)) return [[connector.id, { why: "state" }]];
    const review = snapshot.reviews.tools.find(({ server }) => server === connector.id);
    if (connector.status === "disabled" || !review) return [];
    const tools = review.tools.filter(({ state }) => isHeldBack(state)).length;
    const prompts = review.prompts.length;
    return tools + prompts > 0 ? [[connector.id, { why: "held_back", tools, prompts }]] : [];
  });
  return { ...snapshot, needs: { ...Object.fromEntries(found), ...snapshot.needs } };
}

function change(id: string, to: (connector: ConnectorView) => ConnectorView): void {
  publish((snapshot) => ({
    ...snapshot,
    connectors: snapshot.connectors.map((connector) => (connector.id === id ? to(connector) : connector)),
  }));
}

function makeRule(draft: RuleDraft): void {
  const id = `made-${world.rules.length}`;
  const rule: RuleView["rule"] = { ...draft, id, bound: [], origin: "person", made_at: Date.now() };
  world.rules = [{ rule, server_name: "Files", sentence: "A rule.", used: 0, sleeps: null }, ...world.rules];
}

function record(...parts: unknown[]): void {
  calls.push(parts.join(" "));
}

/** The question is answered. */
function answered(gone: (approval: ApprovalView) => boolean): void {
  publish((snapshot) => ({ ...snapshot, approvals: snapshot.approvals.filter((one) => !gone(one)) }));
}

function changeTrust(to: (trust: TrustView) => TrustView): void {
  publish((snapshot) => ({ ...snapshot, trust: to(snapshot.trust) }));
}

function changeReviews(to: (reviews: Reviews) => Reviews): void {
  publish((snapshot) => ({ ...snapshot, reviews: to(snapshot.reviews) }));
}

/** The reviews without these tools of a connector. */
function withoutTools(reviews: Reviews, server: string, isGone: (tool: string) => boolean): Reviews {
  const tools = reviews.tools
    .map((one) => (one.server === server ? { ...one, tools: one.tools.filter(({ tool }) => !isGone(tool)) } : one))
    .filter(isLeft);
  return { ...reviews, tools };
}

function withoutInstructions(reviews: Reviews, server: string): Reviews {
  const tools = reviews.tools.map((one) => (one.server === server ? { ...one, instructions: null } : one));
  return { ...reviews, tools };
}

function withoutPrompt(reviews: Reviews, server: string, prompt: string): Reviews {
  const tools = reviews.tools
    .map((one) =>
      one.server === server ? { ...one, prompts: one.prompts.filter((held) => held.prompt !== prompt) } : one,
    )
    .filter(isLeft);
  return { ...reviews, tools };
}

const isLeft = ({ tools, prompts, instructions }: ToolsReview) =>
  tools.length + prompts.length > 0 || instructions !== null;

async function refuse(): Promise<void> {
  if (world.refusal) throw world.refusal;
}

function find(id: string): ConnectorView {
  const connector = world.snapshot.connectors.find((one) => one.id === id);
  if (!connector) throw { code: "unknown_server", error: `There is no connector "${id}".` } satisfies ApiError;
  return connector;
}

export const rpc: Rpc = {
  async watch(listener) {
    onSnapshot = listener;
    listener(derived(world.snapshot));
  },
  async routes() {},
  opening: async () => world.opening,
  async connector(id) {
    const connector = find(id);
    return {
      connector,
      tools: world.tools[id] ?? [],
      rejected: world.rejected,
      entry: world.entries[id] ?? "{}",
      secrets: world.secrets[id] ?? [],
    };
  },
  propose: async (text) => world.propose(text),
  missingProgram: async (entry) => world.missingProgram(entry),
  async add(id, entry) {
    record("add", id, entry);
    await refuse();
    // The snapshot that holds it comes when the test publishes it.
    return { ...world.snapshot.connectors[0]!, id, name: id };
  },
  async replace(id, entry) {
    record("replace", id, entry);
    await refuse();
    return find(id);
  },
  async setEnabled(id, enabled) {
    record("set_enabled", id, enabled);
    await refuse();
    change(id, (connector) => ({ ...connector, enabled, status: enabled ? "sleeping" : "disabled" }));
  },
  async setToolEnabled(id, tool, enabled) {
    record("set_tool_enabled", id, tool, enabled);
    await refuse();
    world.tools[id] = (world.tools[id] ?? []).map((one) => (one.name === tool ? { ...one, enabled } : one));
  },
  async remove(id) {
    record("remove", id);
    await refuse();
    publish((snapshot) => ({ ...snapshot, connectors: snapshot.connectors.filter((one) => one.id !== id) }));
  },
  async reconnect(id) {
    record("reconnect", id);
    await refuse();
    return { verified: true };
  },
  async activity(filter, { before, after }, limit) {
    record("activity", JSON.stringify(filter), before ?? "-", after ?? "-");
    const fits = world.activity.filter(
      ({ id, outcome, what }) =>
        (filter.server === undefined || ("server" in what && what.server === filter.server)) &&
        (filter.outcome === undefined || outcome === filter.outcome) &&
        (filter.text === undefined || JSON.stringify(what).includes(filter.text)) &&
        (before == null || id < before) &&
        (after == null || id > after),
    );
    const ordered = after == null ? fits : [...fits].reverse();
    const entries = ordered.slice(0, limit);
    const last = entries.at(-1);
    return { entries, ...(ordered.length > limit && last && { next: last.id }) };
  },
  activityDays: async () => world.days,
  async exportActivity(filter, format) {
    record("export_activity", JSON.stringify(filter), format);
    await refuse();
    return { path: `/home/p/Downloads/activity.${format}`, entries: world.activity.length };
  },
  async watchActivity(listener) {
    onNews = listener;
  },
  async tryTool(ticket, name, input) {
    record("try_tool", name, input);
    const answer = world.answer(name, input);
    if (answer === "never") {
      await new Promise<void>((done) => waiting.set(ticket, done));
      throw { code: "unavailable", error: "The call was cancelled." } satisfies ApiError;
    }
    if (!("ok" in answer)) throw answer;
    return answer;
  },
  async cancelTry(ticket) {
    record("cancel_try");
    waiting.get(ticket)?.();
  },
  async stopTrying(id) {
    record("stop_trying", id);
    await refuse();
    change(id, ({ connection, ...connector }) => ({
      ...connector,
      status: "error",
      connection: { ...connection, retry: null, sequence: connection.sequence + 1 },
    }));
    return find(id);
  },
  async logTail(ticket, id, count, after) {
    record("log_tail", id, after ?? "");
    find(id);
    const from = after === null ? Math.max(0, world.log.length - count) : Number(after);
    if (after !== null && from >= world.log.length) {
      await new Promise<void>((come, reject) => logWaits.set(ticket, { come, reject }));
    }
    const lines = world.log.slice(from, from + count);
    const missed = missedLines;
    missedLines = false;
    return { lines, next: String(from + lines.length), missed };
  },
  async cancelLog(ticket) {
    record("cancel_log");
    logWaits.get(ticket)?.reject({ code: "unavailable", error: "You stopped looking." } satisfies ApiError);
    logWaits.delete(ticket);
  },
  async setSecret(id, name, value) {
    record("set_secret", id, name, value);
    await refuse();
  },
  async forgetSecret(id, name) {
    record("forget_secret", id, name);
    await refuse();
  },
  async keepUntilQuit() {
    record("keep_until_quit");
    await refuse();
    publish((snapshot) => ({ ...snapshot, keychain: { kept_in: "memory", state: "ready" } }));
  },
  async lookAtKeychain() {
    record("look_at_keychain");
    await refuse();
  },
  async signIn(id, ask) {
    record("sign_in", id, ask.acceptIssuer, ask.redirect);
    await refuse();
    const { signIn } = world;
    if (!signIn) return;
    const view = signIn(id, ask);
    publish((snapshot) => ({ ...snapshot, sign_ins: [view] }));
    // The servers are still being asked.
    if (view.stage.stage === "preparing") await new Promise<void>((done) => waiting.set(`sign-in ${id}`, done));
  },
  async cancelSignIn(id) {
    record("cancel_sign_in", id);
    await refuse();
    waiting.get(`sign-in ${id}`)?.();
    publish((snapshot) => ({ ...snapshot, sign_ins: snapshot.sign_ins.filter(({ server }) => server !== id) }));
  },
  async openSignInAgain(id) {
    record("open_sign_in_again", id);
    await refuse();
  },
  async pasteSignIn(address) {
    record("paste_sign_in", address);
    await refuse();
    return world.pasted;
  },
  async signOut(id) {
    record("sign_out", id);
    await refuse();
    change(id, (connector) => ({ ...connector, status: "needs_sign_in", auth: { state: "needs-sign-in" } }));
  },
  async answerApproval(id, answer, content) {
    record("answer_approval", id, answer, content);
    await refuse();
    answered((one) => one.id === id);
  },
  async answerCall(id, answer, alsoSame) {
    record("answer_call", id, answer, alsoSame);
    await refuse();
    const asked = world.snapshot.approvals.find((one) => one.id === id);
    const same = JSON.stringify(asked?.question);
    if (answer === "until_quit") makeRule({ ...world.draft, lasts: "this_run" });
    if (answer === "block") makeRule({ ...world.draft, effect: "deny" });
    answered((one) => one.id === id || (alsoSame && JSON.stringify(one.question) === same));
  },
  async draftRule(id) {
    record("draft_rule", id);
    await refuse();
    return world.draft;
  },
  async alwaysAllow(id, rule) {
    record("always_allow", id, rule);
    await refuse();
    makeRule(JSON.parse(rule) as RuleDraft);
    answered((one) => one.id === id);
  },
  async extendApproval(id) {
    record("extend_approval", id);
    await refuse();
  },
  async openApprovalUrl(id) {
    record("open_approval_url", id);
    await refuse();
  },
  async stopAsking(id) {
    record("stop_asking", id);
    await refuse();
    answered((one) => one.id === id);
  },
  async letAsk(caller) {
    record("let_ask", caller);
    await refuse();
    changeTrust((trust) => ({ ...trust, muted: trust.muted.filter((one) => one.id !== caller) }));
  },
  async allowNextTime(id) {
    record("allow_next_time", id);
    await refuse();
    publish((snapshot) => ({ ...snapshot, missed: snapshot.missed.filter((one) => one.id !== id) }));
  },
  async approveLaunches(ids, keep) {
    record("approve_launches", ...ids, ...keep.map((rule) => `keep:${rule}`));
    await refuse();
    changeReviews((reviews) => ({ ...reviews, launches: reviews.launches.filter(({ id }) => !ids.includes(id)) }));
  },
  async answerAsleep(id, keep) {
    record("answer_asleep", id, keep ? "keep" : "withdraw");
    await refuse();
    changeReviews((reviews) => ({ ...reviews, asleep: reviews.asleep.filter((one) => one.id !== id) }));
  },
  async keepBlocked(id) {
    record("keep_blocked", id);
    await refuse();
    changeReviews((reviews) => ({ ...reviews, launches: reviews.launches.filter((one) => one.id !== id) }));
  },
  async versionsOf(server) {
    record("versions_of", server);
    await refuse();
    return world.versions;
  },
  async useVersion(server, version) {
    record("use_version", server, version);
    await refuse();
  },
  async approveTools(server, versions) {
    record("approve_tools", server, ...versions.map(({ tool, version }) => `${tool}@${version}`));
    await refuse();
    changeReviews((reviews) => withoutTools(reviews, server, (name) => versions.some(({ tool }) => tool === name)));
  },
  async keepToolBlocked(server, tool, version) {
    record("keep_tool_blocked", server, tool, version);
    await refuse();
    changeReviews((reviews) => withoutTools(reviews, server, (name) => name === tool));
  },
  async approvePrompt(server, prompt, version) {
    record("approve_prompt", server, prompt, version);
    await refuse();
    changeReviews((reviews) => withoutPrompt(reviews, server, prompt));
  },
  async keepPromptBlocked(server, prompt, version) {
    record("keep_prompt_blocked", server, prompt, version);
    await refuse();
    changeReviews((reviews) => withoutPrompt(reviews, server, prompt));
  },
  async approveInstructions(server, version) {
    record("approve_instructions", server, version);
    await refuse();
    changeReviews((reviews) => withoutInstructions(reviews, server));
  },
  async keepInstructionsWithheld(server, version) {
    record("keep_instructions_withheld", server, version);
    await refuse();
    changeReviews((reviews) => withoutInstructions(reviews, server));
  },
  async answerProposal(id, answer) {
    record("answer_proposal", id, answer);
    await refuse();
    changeReviews((reviews) => ({ ...reviews, proposals: reviews.proposals.filter((one) => one.id !== id) }));
  },
  rules: async () => world.rules,
  async saveRule(rule) {
    record("save_rule", rule);
    await refuse();
  },
  async withdrawRule(id) {
    record("withdraw_rule", id);
    await refuse();
    world.rules = world.rules.filter(({ rule }) => rule.id !== id);
  },
  clients: async () => world.clients,
  async changeClient(id, change) {
    record("change_client", id, change);
    await refuse();
    world.clients = world.clients.map((one) => (one.id === id ? { ...one, ...JSON.parse(change) } : one));
  },
  async revokeClient(id) {
    record("revoke_client", id);
    await refuse();
    world.clients = world.clients.filter((one) => one.id !== id);
  },
  async openPairing() {
    record("open_pairing");
    await refuse();
    changeTrust((trust) => ({ ...trust, pairing: { open_until: Date.now() + 120_000, request: null } }));
  },
  async closePairing() {
    record("close_pairing");
    await refuse();
    changeTrust((trust) => ({ ...trust, pairing: null }));
  },
  async turnAway(id) {
    record("turn_away", id);
    await refuse();
    changeTrust((trust) => ({ ...trust, pairing: trust.pairing && { ...trust.pairing, request: null } }));
  },
  async answerPairing(id, pairing) {
    record("answer_pairing", id, JSON.stringify(pairing));
    await refuse();
    changeTrust((trust) => ({ ...trust, pairing: null }));
  },
  askers: async () => world.askers,
  pages: async () => world.pages,
  async setPage(origin, on) {
    record("set_page", origin, on);
    await refuse();
    world.pages = world.pages.filter((one) => one !== origin);
    if (on) world.pages = [...world.pages, origin];
  },
  async setAsker(path, script, on) {
    record("set_asker", path, script, on);
    await refuse();
    world.askers = world.askers.filter((one) => one.path !== path || one.script !== script);
    if (on) world.askers = [...world.askers, { path, script }];
  },
  async setApiMode(mode) {
    record("set_api_mode", mode);
    await refuse();
    changeTrust((trust) => ({ ...trust, api_mode: mode, api_mode_assumed: false }));
  },
  async setWalkIn(policy) {
    record("set_walk_in", policy);
    await refuse();
    changeTrust((trust) => ({ ...trust, walk_in: policy }));
  },
  async pauseAll(on) {
    record("pause_all", on);
    await refuse();
    changeTrust((trust) => ({ ...trust, paused: on }));
  },
  async resume(server) {
    record("resume", server);
    await refuse();
    change(server, ({ paused: _paused, action: _action, ...connector }) => ({ ...connector, status: "sleeping" }));
  },
  async choose(server, choice, tools) {
    record("choose", server, choice, ...tools);
    await refuse();
  },
  settings: async () => ({ theme: world.theme }),
  async setTheme(theme) {
    record("set_theme", theme);
    await refuse();
  },
};
