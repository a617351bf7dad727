// Generated from the bridge's types by `make types`; never edited by hand.

export type Snapshot = { 
/**
 * Of this program.
 */
version: string, api: ApiView, config: ConfigView, 
/**
 * In the order of the file.
 */
connectors: Array<ConnectorView>, 
/**
 * Those of them that wait for the person, by their ids.
 */
needs: { [key in string]: Need }, keychain: KeychainView, 
/**
 * Sign-ins that wait for the person or their browser, or that just failed; at most one for each connector.
 */
sign_ins: Array<SignInView>, 
/**
 * Questions that wait for the person, the oldest first.
 */
approvals: Array<ApprovalView>, 
/**
 * Calls that nobody answered in time, the newest first.
 */
missed: Array<ApprovalView>, 
/**
 * What waits for the person's look.
 */
reviews: Reviews, trust: TrustView, };

export type ApiView = { "state": "starting", port: number, } | { "state": "listening", port: number, } | { "state": "port_taken", port: number, 
/**
 * One sentence, with the holder's name and process id where the system tells.
 */
message: string, };

export type ConfigView = { 
/**
 * Absolute path of `connectors.json`.
 */
path: string, 
/**
 * True while the file does not exist and the default connector stands in.
 */
is_default: boolean, 
/**
 * Problems and remarks, errors first.
 */
notices: Array<Notice>, };

export type Notice = { level: NoticeLevel, 
/**
 * What, where and what to do, in one or two sentences.
 */
message: string, 
/**
 * 1-based, in characters; absent where the remark is about no place in the file.
 */
line?: number, column?: number, 
/**
 * The connector it is about, as written (may be no legal id).
 */
server?: string, };

export type NoticeLevel = "error" | "warning" | "info";

export type Status = "disabled" | "sleeping" | "connecting" | "connected" | "retrying" | "needs_sign_in" | "needs_secret" | "needs_review" | "paused" | "keychain_unavailable" | "error" | "invalid";

export type TransportKind = "stdio" | "http" | "sse";

export type Era = "legacy" | "modern";

export type Readiness = "ready" | "unknown";

export type ConnectorView = { 
/**
 * As written in the file; illegal ones appear with status `invalid`.
 */
id: string, 
/**
 * Shown to people; the id where the file gives none.
 */
name: string, description: string, transport: TransportKind, 
/**
 * The command line or URL as written (owner only).
 */
summary: string, enabled: boolean, status: Status, 
/**
 * Number of tools listed to callers.
 */
tools: number, action?: Action, 
/**
 * One sentence, without an upstream's own output.
 */
error?: string, 
/**
 * The upstream's last lines on stderr, where they explain the error (owner only).
 */
error_detail?: string, 
/**
 * What is going on while connecting, such as "Still installing…".
 */
progress?: string, auth: AuthView, connection: ConnectionView, 
/**
 * Unix milliseconds of the last call, in this run.
 */
used_at?: number, 
/**
 * By whom it is paused, whatever else it waits for.
 */
paused?: PausedView, };

export type AuthView = { state: AuthState, 
/**
 * What the sign-in allows, or would have to allow; absent where nothing is known of it.
 */
scopes?: Array<string>, };

export type AuthState = "none" | "signed-in" | "needs-sign-in" | "error" | "unsupported";

export type KeychainView = { kept_in: KeptIn, state: KeychainState, 
/**
 * Why not and what to do, where secrets cannot be had.
 */
message?: string, };

export type KeptIn = "keychain" | "file" | "memory";

export type KeychainState = "unused" | "ready" | "locked" | "absent" | "slow" | "refused";

export type SignInView = { server: string, 
/**
 * The page where the person signs in, as host and port; absent before that is known.
 */
sign_in_at?: string, 
/**
 * Where the access goes, as host and port.
 */
access_goes_to: string, 
/**
 * Unix milliseconds at which the stage began.
 */
since: number, stage: SignInStage, };

export type SignInStage = { "stage": "preparing" } | { "stage": "confirm", issuer: string, 
/**
 * Whether it was another issuer before.
 */
changed: boolean, 
/**
 * Host and port at which the page's answer becomes the access, where that is of another domain than the issuer.
 */
code_goes_to?: string, } | { "stage": "needs_client", issuer: string, 
/**
 * Exactly what to register there.
 */
redirect_uri: string, } | { "stage": "no_pkce", issuer: string, } | { "stage": "waiting", 
/**
 * To open or copy once more.
 */
url: string, redirect: RedirectKind, 
/**
 * Whether there is another way back, and which.
 */
other_way?: RedirectKind, scopes: Array<string>, 
/**
 * Unix milliseconds after which the answer no longer counts.
 */
expires_at: number, } | { "stage": "finishing" } | { "stage": "failed", outcome: SignInOutcome, message: string, };

export type RedirectKind = "deep-link" | "loopback";

export type SignInOutcome = "signed_in" | "expired" | "invalid_state" | "denied" | "failed" | "cancelled";

export type ApprovalView = { 
/**
 * Unguessable; answers refer to it.
 */
id: string, state: ApprovalState, 
/**
 * The connector that it is about.
 */
server: string, 
/**
 * Its name for people.
 */
server_name: string, 
/**
 * Unix milliseconds.
 */
asked_at: number, 
/**
 * Unix milliseconds; without an answer by then it is no.
 */
expires_at: number, question: Question, 
/**
 * Further calls of whoever asks that were refused, as too many of its questions wait.
 */
refused: number, };

export type ApprovalState = "waiting" | "approved" | "denied" | "expired";

export type Question = { "kind": "elicitation", asks: Elicitation, } | { "kind": "call", call: CallQuestion, } | { "kind": "manage", who: WhoView, change: ChangeQuestion, };

export type Elicitation = { "mode": "form", message: string, 
/**
 * JSON Schema of an object with plain members.
 */
schema: JsonValue, 
/**
 * What the schema proposes, member by member.
 */
defaults: JsonValue, } | { "mode": "url", message: string, 
/**
 * The whole address.
 */
url: string, 
/**
 * Its host as it is looked up, for people to see where it leads.
 */
host: string, 
/**
 * Why to look twice, such as letters that look like others.
 */
warning?: string, };

export type CallQuestion = { who: WhoView, subject: AskedSubject, 
/**
 * Where it would be done: the host that is contacted, or the program that runs.
 */
place: string, 
/**
 * Whether that is on this computer.
 */
is_local: boolean, 
/**
 * All of them, short ones first.
 */
arguments: Array<ArgumentView>, 
/**
 * How many other questions ask for exactly the same.
 */
same: number, 
/**
 * What writing a file would do, where a look told that when it was asked.
 */
writes: FileWrite | null, };

export type FileWrite = "creates" | "replaces";

export type AskedSubject = { "subject": "tool", 
/**
 * As the upstream spells it.
 */
tool: string, exposed_name: string, title: string | null, description: string, 
/**
 * The upstream's claims.
 */
hints: ToolHints, } | { "subject": "resource", uri: string, } | { "subject": "prompt", name: string, };

export type ArgumentView = { name: string, 
/**
 * The text itself where it is one, else its JSON.
 */
value: string, 
/**
 * Whether the value is a text.
 */
is_text: boolean, 
/**
 * Length of `value` in characters.
 */
size: number, 
/**
 * False for one that the tool's schema does not know.
 */
known: boolean, };

export type ChangeQuestion = { "change": "add", launch: LaunchReview, } | { "change": "enable" } | { "change": "disable" } | { "change": "remove" } | { "change": "reconnect" } | { "change": "auto_approve", patterns: Array<string>, 
/**
 * The tools of now that these cover, by the upstream's own names. A yes is to these as they are.
 */
tools: Array<string>, } | { "change": "set_secret", name: string | null, 
/**
 * There is one already, which it would take the place of.
 */
replaces: boolean, 
/**
 * The origin or program that it would go to.
 */
goes_to: string, } | { "change": "forget_secret", name: string | null, } | { "change": "sign_in" } | { "change": "sign_out" };

export type Need = { "why": "state" } | { "why": "held_back", tools: number, prompts: number, };

export type Reviews = { 
/**
 * In the order of the file.
 */
launches: Array<LaunchReview>, tools: Array<ToolsReview>, 
/**
 * What the person looked at and left as it is: it waits for nothing, and can still be approved.
 */
left: Array<ToolsReview>, proposals: Array<RuleProposal>, asleep: Array<SleepingRules>, };

export type LaunchReview = { 
/**
 * Names exactly this launch: another command, address or reason has another one.
 */
id: string, server: string, 
/**
 * What the entry calls itself.
 */
server_name: string, why: LaunchWhy, came_from: EntryOrigin, now: LaunchShown, 
/**
 * What was approved last, where something was.
 */
before: LaunchShown | null, 
/**
 * What to look at twice.
 */
stands_out: Array<StandsOut>, 
/**
 * Rules that allow and were made for another launch: they sleep under this one unless the person keeps them.
 */
asleep: Array<RuleSaid>, };

export type LaunchWhy = { "why": "new" } | { "why": "changed" } | { "why": "turned_on" } | { "why": "tools_shown", tools: Array<string>, };

export type EntryOrigin = { "from": "file" } | { "from": "caller", who: WhoView, };

export type LaunchShown = { "kind": "run", 
/**
 * Command and arguments as they would be given to the program, `${secret:}` unexpanded.
 */
command_line: Array<string>, 
/**
 * The program that was found under that name; `null` = none.
 */
program: string | null, cwd: string | null, env_file: string | null, env: Array<Given>, } | { "kind": "contact", url: string, 
/**
 * Its host as it is looked up.
 */
host: string, headers: Array<Given>, 
/**
 * How it signs in, in words of the file: `none`, `token`, `oauth`; `null` = until the server asks.
 */
auth: string | null, 
/**
 * Settings of the sign-in that the entry makes, each as `name: value`.
 */
sign_in: Array<string>, };

export type Given = { name: string, 
/**
 * As written.
 */
template: string, 
/**
 * Variables of the person's environment that go into it, each with its present value; `null` = not set.
 */
from_environment: Array<[string, string | null]>, 
/**
 * The connector's secrets that go into it, by name.
 */
secrets: Array<string>, };

export type StandsOut = { "what": "inline_code", program: string, } | { "what": "other_rights", program: string, } | { "what": "wide_folder", argument: string, } | { "what": "loader_variable", name: string, } | { "what": "unpinned", package: string, } | { "what": "downloads", runner: string, } | { "what": "missing_pkce" } | { "what": "not_encrypted" } | { "what": "not_found", program: string, };

export type ToolsReview = { server: string, server_name: string, tools: Array<ToolReview>, 
/**
 * Prompts about which something stands out; each is approved for itself.
 */
prompts: Array<PromptReview>, 
/**
 * What the server tells assistants about itself, where that waits.
 */
instructions: TextReview | null, };

export type ToolReview = { tool: string, state: ToolState, 
/**
 * Names exactly this version: a yes to another one is none.
 */
version: string, before: ToolText | null, now: ToolText, findings: Array<FindingView>, 
/**
 * Unix milliseconds of the last approval.
 */
approved_at?: number, };

export type ToolState = "approved" | "reworded" | "pending" | "held" | "changed";

export type ToolText = { title: string | null, description: string, 
/**
 * JSON, indented, members in order.
 */
input_schema: string, output_schema: string | null, hints: ToolHints, 
/**
 * What else of it callers get: a JSON object, indented, as received.
 */
also: string | null, };

export type PromptReview = { prompt: string, 
/**
 * `held`, or `changed` where another version was approved.
 */
state: ToolState, 
/**
 * Names exactly this version: a yes to another one is none.
 */
version: string, before: PromptText | null, now: PromptText, findings: Array<FindingView>, 
/**
 * Unix milliseconds of the last approval.
 */
approved_at?: number, };

export type PromptText = { title: string | null, description: string | null, arguments: Array<PromptArgument>, 
/**
 * All of it as received: JSON, indented.
 */
whole: string, };

export type PromptArgument = { name: string, description: string | null, required: boolean, };

export type TextReview = { version: string, before: string | null, now: string, findings: Array<FindingView>, };

export type FindingView = { 
/**
 * The kind as the API spells it, such as `hidden_characters`.
 */
kind: string, 
/**
 * One sentence.
 */
sentence: string, 
/**
 * Where, such as `description`.
 */
place: string, 
/**
 * What was found, hidden characters made visible, shortened.
 */
excerpt: string, };

export type RuleProposal = { id: string, server: string, server_name: string, 
/**
 * As written in the file: patterns, or one `*` for `true`.
 */
patterns: Array<string>, 
/**
 * The tools of now that a yes would cover.
 */
tools: Array<string>, };

export type WhoView = { kind: WhoKind, 
/**
 * The client's name, else the program's; empty where neither is known.
 */
name: string, 
/**
 * Of a paired client.
 */
client: string | null, program: ProgramView | null, };

export type WhoKind = "owner" | "walk_in" | "client";

export type ProgramView = { name: string, path: string | null, 
/**
 * What an interpreter runs.
 */
script: string | null, pid: number, };

export type TrustView = { standing: TrustStanding, api_mode: ApiMode, 
/**
 * The mode was not chosen: what was chosen is lost, or cannot be read at present.
 */
api_mode_assumed: boolean, walk_in: WalkInPolicy, 
/**
 * Whether what runs needs a look first.
 */
review: boolean, 
/**
 * All connectors are paused.
 */
paused: boolean, 
/**
 * While an assistant may be paired.
 */
pairing: PairingView | null, 
/**
 * Callers that may not ask at present.
 */
muted: Array<MutedView>, };

export type TrustStanding = { "state": "opening" } | { "state": "fresh" } | { "state": "verified" } | { "state": "broken", message: string, } | { "state": "unknown", message: string, } | { "state": "this_run" };

export type ApiMode = "open" | "token";

export type RuleView = { rule: Rule, 
/**
 * The connector's name for people.
 */
server_name: string, 
/**
 * The whole rule in one sentence.
 */
sentence: string, 
/**
 * How often it decided something, as far as activity goes back.
 */
used: number, 
/**
 * Unix milliseconds.
 */
last_used_at?: number, 
/**
 * Why it decides nothing at present.
 */
sleeps: RuleSleep | null, };

export type RuleSaid = { rule: string, sentence: string, };

export type RuleSleep = "review" | "elsewhere" | "changed" | "expired";

export type SleepingRules = { 
/**
 * Names exactly these rules and what they would go on for.
 */
id: string, server: string, server_name: string, 
/**
 * What they would go on for.
 */
now: LaunchShown, rules: Array<RuleSaid>, };

export type WalkInPolicy = "ask" | "allow";

export type PairingView = { 
/**
 * Unix milliseconds.
 */
open_until: number, 
/**
 * The one that asked, whose code is to be typed.
 */
request: PairingRequest | null, };

export type PairingRequest = { id: string, 
/**
 * What it calls itself.
 */
name: string, program: ProgramView | null, 
/**
 * Codes that were typed wrong; after three it is over.
 */
wrong_codes: number, };

export type ClientView = { id: string, name: string, scopes: Array<Scope>, 
/**
 * The connectors it sees; `null` = all.
 */
servers: Array<string> | null, asks_itself: boolean, 
/**
 * Unix milliseconds, all of these.
 */
paired_at: number, expires_at?: number, last_used_at?: number, program: ProgramView | null, };

export type AskerView = { path: string, script: string | null, };

export type MutedView = { 
/**
 * Names this caller, to let it ask again.
 */
id: string, who: WhoView, 
/**
 * Unix milliseconds; `null` = until the person is back.
 */
until?: number, };

export type PausedView = { 
/**
 * `null` = everything is paused.
 */
by: WhoView | null, };

export type Scope = "read" | "call" | "manage";

export type ActivityEntry = { 
/**
 * Grows with every entry that is kept; never given twice in one database.
 */
id: number, 
/**
 * Unix milliseconds at which it ended; it began `duration_ms` earlier.
 */
at: number, who: ActivityWho, what: ActivityWhat, outcome: ActivityOutcome, 
/**
 * The API's code for what went wrong or stood in the way, such as `tool_error`.
 */
code?: string, duration_ms?: number, allowed_by: AllowedBy, 
/**
 * Something about it deserves a look: the result held text that looks like instructions, or the like.
 */
warnings: boolean, };

export type ActivityWho = { kind: ActivityCaller, 
/**
 * Of a paired client.
 */
client_id?: string, 
/**
 * Its name for people.
 */
client_name?: string, 
/**
 * The program at the other end of the connection, as a person reads it: `calling.py (python3.12)`.
 */
program_name?: string, program_path?: string, 
/**
 * What it runs, for an interpreter.
 */
program_script?: string, pid?: number, };

export type ActivityCaller = "owner" | "walk_in" | "client" | "itself";

export type ActivityWhat = { "kind": "call", server: string, tool: string, arguments: Arguments, } | { "kind": "read", server: string, uri: string, } | { "kind": "prompt", server: string, name: string, arguments: Arguments, } | { "kind": "question", server: string, asks: ActivityQuestion, } | { "kind": "sign_in", server: string, } | { "kind": "sign_out", server: string, } | { "kind": "review", 
/**
 * `null` where it is about no connector.
 */
server: string | null, of: ActivityReview, 
/**
 * The tool, rule or assistant, where it is about one.
 */
subject: string | null, } | { "kind": "change", 
/**
 * As written in the file (may be no legal id); `null` where it is about no connector.
 */
server: string | null, change: ActivityChange, 
/**
 * The tool or secret, where it is about one.
 */
subject: string | null, } | { "kind": "lost", entries: number, };

export type Arguments = { "kept": "shape", "value": JsonValue } | { "kept": "full", "value": JsonValue };

export type ActivityQuestion = "form" | "page" | "change";

export type ActivityReview = "launch" | "tools" | "prompt" | "rule" | "rule_changed" | "rule_withdrawn" | "rules_kept" | "next_time" | "muted" | "unmuted" | "paired" | "client_changed" | "unpaired" | "asks_itself" | "asked_here" | "token_needed" | "token_not_needed" | "walk_ins_asked" | "walk_ins_allowed" | "pages";

export type ActivityChange = "added" | "edited" | "removed" | "turned_on" | "turned_off" | "tool_turned_on" | "tool_turned_off" | "auto_approve" | "secret_set" | "secret_forgotten" | "file_added" | "file_edited" | "file_removed" | "paused" | "resumed";

export type ActivityOutcome = "ok" | "failed" | "denied" | "cancelled";

export type AllowedBy = { "by": "owner" } | { "by": "nobody" } | { "by": "rule", rule: string, 
/**
 * How the rule reads for people.
 */
name: string | null, } | { "by": "person", answer: PersonAnswer, } | { "by": "policy", policy: StandingPolicy, };

export type PersonAnswer = "once" | "until_quit" | "always" | "denied" | "unanswered";

export type StandingPolicy = "walk_ins_may_call" | "asks_itself" | "may_not_ask";

export type ActivityFilter = { 
/**
 * A connector's id.
 */
server?: string, caller?: ActivityCaller, 
/**
 * A paired client's id.
 */
client?: string, 
/**
 * A program's path.
 */
program?: string, outcome?: ActivityOutcome, kind?: ActivityKind, 
/**
 * Occurs in the names, addresses, arguments or codes, whatever the case of its letters.
 */
text?: string, 
/**
 * Unix milliseconds, itself included.
 */
from?: number, 
/**
 * Unix milliseconds, itself not included.
 */
to?: number, };

export type ActivityKind = "call" | "read" | "prompt" | "question" | "sign_in" | "sign_out" | "review" | "change" | "lost";

export type ActivityPage = { entries: Array<ActivityEntry>, 
/**
 * To ask for the rest with; absent when there is none.
 */
next?: number, };

export type ActivityDay = { 
/**
 * `2026-07-28`
 */
day: string, calls: number, 
/**
 * Those of them that did not end well.
 */
failures: number, };

export type RuleUse = { rule: string, times: number, 
/**
 * Unix milliseconds of the last time.
 */
last: number, };

export type ActivityExport = { 
/**
 * Absolute.
 */
path: string, entries: number, };

export type ExportFormat = "jsonl" | "csv";

export type ConnectionView = { 
/**
 * Sessions started so far in this run.
 */
generation: number, 
/**
 * Grows with every state the connector enters.
 */
sequence: number, 
/**
 * Unix milliseconds at which the present state was entered.
 */
since: number, 
/**
 * Unix milliseconds at which the upstream was last heard of; 0 = never.
 */
observed_at: number, era: Era | null, 
/**
 * The negotiated protocol revision, such as `2025-11-25`.
 */
protocol: string | null, retry: RetryView | null, readiness: Readiness, };

export type RetryView = { number: number, max: number, scheduled_at: number, next_attempt_at: number, delay_ms: number, };

export type ConnectorDetail = { connector: ConnectorView, tools: Array<ToolView>, 
/**
 * Tools of the upstream's list that cannot be offered, each with why.
 */
rejected: Array<RejectedTool>, 
/**
 * What its server tells assistants about itself, as it was approved.
 */
instructions?: string, 
/**
 * The entry as JSON text, as written in the file (owner only).
 */
entry: string, 
/**
 * The token and the secrets that the entry names, in this order (owner only).
 */
secrets: Array<SecretView>, };

export type SecretView = { 
/**
 * As `${secret:NAME}` spells it; `null` = the token.
 */
name: string | null, 
/**
 * Whether it can be used as the entry stands; `null` = the keychain does not say at present.
 */
set: boolean | null, 
/**
 * It was entered for another address or command, and is kept from this one.
 */
withheld: boolean, };

export type LogPage = { 
/**
 * Each with its UTC time before it, redacted.
 */
lines: Array<string>, 
/**
 * The place after these lines, to ask for later ones with.
 */
next: string, 
/**
 * True when lines between the place asked for and these are lost: the log went on too fast, or begins anew.
 */
missed: boolean, };

export type ToolView = { name: string, exposed_name: string, title: string | null, description: string, 
/**
 * JSON Schema; root is always an object type.
 */
input_schema: JsonValue, 
/**
 * Claims of the upstream, nothing more.
 */
hints: ToolHints, 
/**
 * False when `disabledTools` hides it.
 */
enabled: boolean, state: ToolState, 
/**
 * What the scan found in it.
 */
findings: Array<FindingView>, 
/**
 * Why callers do not see it, in a sentence; absent where they do.
 */
hidden?: string, 
/**
 * True when `autoApprove` covers it.
 */
auto_approved: boolean, };

export type ToolHints = { read_only: boolean | null, destructive: boolean | null, idempotent: boolean | null, open_world: boolean | null, };

export type RejectedTool = { 
/**
 * Its name where it has one, else its place in the list (`#3`).
 */
name: string, reason: string, };

export type CallAnswer = { ok: boolean, 
/**
 * Blocks: `{"type":"text"|"image"|"audio"|"resource_link"|"resource"|"unknown",…}`.
 */
content: Array<JsonValue>, 
/**
 * All that a model should read, at most 200,000 characters.
 */
text: string, structured?: JsonValue, 
/**
 * The upstream's own words when the tool failed (`isError`), at most 2,000 characters.
 */
error?: string, 
/**
 * `tool_error` when the tool failed.
 */
code?: string, server: string, 
/**
 * The tool as its upstream spells it.
 */
tool: string, duration_ms: number, truncated: boolean, 
/**
 * Where the whole result can be read, when it was shortened.
 */
result_id?: string, 
/**
 * What looks dangerous in the result, a sentence each.
 */
warnings: Array<string>, };

export type Finding = { kind: FindingKind, 
/**
 * Where: `name`, `description`, `inputSchema.properties.path.description`, `instructions`.
 */
place: string, 
/**
 * The words meant, at most 200 characters, with whatever is hidden in them made visible. The upstream's: never to
 * be rendered as markup.
 */
excerpt: string, };

export type FindingKind = "hidden_characters" | "lookalikes" | "out_of_sight" | "instruction" | "posing" | "secrecy" | "secrets" | "sending" | "other_tools" | "deceptive_name" | "unusual_name" | "unprintable";

export type Piece = { "kind": "text", text: string, } | { "kind": "hidden", 
/**
 * What stands in its place: `␛`, `⟨U+200B×3⟩`, `⟨hidden: send secrets⟩`.
 */
shown: string, 
/**
 * What it is: `U+200B zero-width space`.
 */
label: string, 
/**
 * How many characters.
 */
count: number, };

export type Code = "bad_request" | "unauthorized" | "host_not_allowed" | "origin_not_allowed" | "peer_not_owner" | "scope_missing" | "denied" | "approval_timeout" | "unknown_tool" | "unknown_server" | "not_found" | "method_not_allowed" | "needs_review" | "tool_changed" | "needs_sign_in" | "needs_secret" | "disabled" | "already_exists" | "too_large" | "unsupported_media_type" | "rate_limited" | "internal" | "not_saved" | "upstream_error" | "result_too_large" | "unsafe_authorization_url" | "pkce_not_supported" | "unavailable" | "keychain_unavailable" | "callback_unavailable" | "upstream_timeout";

export type Action = "enable" | "reconnect" | "edit" | "set_secret" | "sign_in" | "unlock_keychain" | "review" | "resume";

export type ApiError = { 
/**
 * What to branch on.
 */
code: Code, 
/**
 * What went wrong, where, and what to do.
 */
error: string, 
/**
 * The one click that helps, where there is one.
 */
action?: Action, };

export type Paste = { 
/**
 * One for each server found, in the order of the text.
 */
proposals: Array<Proposal>, 
/**
 * Why nothing was found, or why the text as a whole cannot be used: a sentence with what to do.
 */
problem: string | null, };

export type Proposal = { 
/**
 * A legal id, different from those of the other proposals; may already be taken in the file.
 */
id: string, 
/**
 * The entry as it would stand in `connectors.json`: a JSON object, indented.
 */
entry: string, 
/**
 * The command line or URL.
 */
summary: string, 
/**
 * What was changed or left out, one sentence each.
 */
notes: Array<string>, 
/**
 * Why it cannot be added as it is.
 */
problem: string | null, };

export type Theme = "system" | "light" | "dark";

export type Rule = { id: string, effect: RuleEffect, server: string, kind: RuleKind, 
/**
 * Any of these fits the tool's own name, the URI of the resource or the prompt's name: `*` is any run of
 * characters, `?` exactly one. Never empty.
 */
patterns: Array<string>, arguments: RuleArguments, caller: RuleCaller, 
/**
 * Unix milliseconds from which on the rule is none.
 */
expires_at?: number, lasts: RuleLasts, 
/**
 * The tools it matched when it was made, in order of their names; empty unless it allows tools.
 */
bound: Array<BoundTool>, 
/**
 * What its connector ran or contacted when it was made, or when the person kept it for something else; none of a rule
 * that denies. One that allows and names none sleeps.
 */
launch?: string, origin: RuleOrigin, 
/**
 * Unix milliseconds.
 */
made_at: number, 
/**
 * The person's own words; may be empty.
 */
note: string, };

export type RuleDraft = { effect: RuleEffect, server: string, kind: RuleKind, patterns: Array<string>, arguments: RuleArguments, caller: RuleCaller, expires_at?: number, lasts: RuleLasts, note: string, };

export type RuleEffect = "allow" | "deny";

export type RuleKind = "tools" | "resources" | "prompts";

export type RuleArguments = { "which": "any" } | { "which": "each", conditions: { [key in string]: ArgumentCondition }, };

export type ArgumentCondition = { "is": "any" } | { "is": "absent" } | { "is": "equals", value: JsonValue, } | { "is": "one_of", values: Array<JsonValue>, } | { "is": "url", 
/**
 * Scheme, host and port as `https://host` or `https://host:8443`, the host in ASCII.
 */
origin: string, 
/**
 * Whole segments, decoded, that its path begins with; none for all of the origin.
 */
path: Array<string>, } | { "is": "inside", 
/**
 * Absolute, and resolved when the rule was made.
 */
folder: string, };

export type RuleCaller = { "who": "anyone" } | { "who": "program", program: ProgramId, } | { "who": "client", client: string, };

export type ProgramId = { 
/**
 * Absolute, resolved.
 */
path: string, 
/**
 * Absolute, resolved; of interpreters only.
 */
script?: string, };

export type RuleLasts = "this_run" | "kept";

export type RuleOrigin = "person" | "choice" | "built_in" | "file";

export type BoundTool = { tool: string, fingerprint: string, };

export type AddingChoice = { "choice": "look_up" } | { "choice": "nothing" } | { "choice": "these", tools: Array<string>, };

export type FileValue = { "value": "all" } | { "value": "pattern", pattern: string, };

export type FileProposal = { server: string, value: FileValue, 
/**
 * What it would allow: clean tools of now that no rule for everybody covers yet. Never empty.
 */
tools: Array<BoundTool>, };
