// Generated from the bridge's types by `make types`; never edited by hand.

export type Snapshot = { 
/**
 * Of this program.
 */
version: string, api: ApiView, config: ConfigView, 
/**
 * In the order of the file.
 */
connectors: Array<ConnectorView>, keychain: KeychainView, 
/**
 * Sign-ins that wait for the person or their browser, or that just failed; at most one for each connector.
 */
sign_ins: Array<SignInView>, 
/**
 * Questions that wait for the person, the oldest first.
 */
approvals: Array<ApprovalView>, };

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

export type Status = "disabled" | "sleeping" | "connecting" | "connected" | "retrying" | "needs_sign_in" | "needs_secret" | "keychain_unavailable" | "error" | "invalid";

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
used_at?: number, };

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
expires_at: number, question: Question, };

export type ApprovalState = "waiting" | "approved" | "denied" | "expired";

export type Question = { "kind": "elicitation", asks: Elicitation, };

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
enabled: boolean, 
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
result_id?: string, };

export type Code = "bad_request" | "host_not_allowed" | "origin_not_allowed" | "peer_not_owner" | "scope_missing" | "denied" | "approval_timeout" | "unknown_tool" | "unknown_server" | "not_found" | "method_not_allowed" | "needs_review" | "needs_sign_in" | "needs_secret" | "disabled" | "already_exists" | "too_large" | "unsupported_media_type" | "rate_limited" | "internal" | "not_saved" | "upstream_error" | "result_too_large" | "unsafe_authorization_url" | "pkce_not_supported" | "unavailable" | "keychain_unavailable" | "callback_unavailable" | "upstream_timeout";

export type Action = "enable" | "reconnect" | "edit" | "set_secret" | "sign_in" | "unlock_keychain";

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
