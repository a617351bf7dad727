/** What happened, in words, and the list of it that grows at both ends. Pure. */
import type {
  ActivityDay,
  ActivityEntry,
  ActivityFilter,
  ActivityOutcome,
  ActivityWho,
  AllowedBy,
  Arguments,
} from "./bridge";
import * as m from "./messages";

/** Entries that stay on the page at its newer end while nobody asks for earlier ones. */
export const mostKept = 1_000;

/** The list with what came since, which is given the oldest first; nothing twice. */
export function withNews(list: ActivityEntry[], news: ActivityEntry[]): ActivityEntry[] {
  const newest = list[0]?.id ?? 0;
  const fresh = news.filter(({ id }) => id > newest).reverse();
  return fresh.length === 0 ? list : [...fresh, ...list];
}

/** The list with an earlier page behind it; nothing twice. */
export function withEarlier(list: ActivityEntry[], page: ActivityEntry[]): ActivityEntry[] {
  const oldest = list.at(-1)?.id ?? Infinity;
  return [...list, ...page.filter(({ id }) => id < oldest)];
}

/** Whether it excludes something. */
export function isFiltering(filter: ActivityFilter): boolean {
  return Object.values(filter).some((value) => value !== undefined && value !== "");
}

/** What was done, without the connector's name. */
export function title({ what }: ActivityEntry): string {
  switch (what.kind) {
    case "call":
      return what.tool;
    case "read":
      return m.activity_read({ what: what.uri });
    case "prompt":
      return m.activity_prompt({ what: what.name });
    case "question": {
      const words = {
        form: m.activity_question_form(),
        page: m.activity_question_page(),
        change: m.activity_question_change(),
      };
      return words[what.asks];
    }
    case "sign_in":
      return m.activity_sign_in();
    case "sign_out":
      return m.activity_sign_out();
    case "review": {
      const about = { what: what.subject ?? "" };
      const words = {
        launch: m.activity_review_launch(),
        tools: what.subject === null ? m.activity_review_instructions() : m.activity_review_tool(about),
        prompt: m.activity_review_prompt(about),
        rule: m.activity_review_rule(about),
        rule_changed: m.activity_review_rule_changed(about),
        rule_withdrawn: m.activity_review_rule_withdrawn(about),
        rules_kept: m.activity_review_rules_kept(),
        next_time: m.activity_review_next_time(about),
        muted: m.activity_review_muted(about),
        unmuted: m.activity_review_unmuted(about),
        paired: m.activity_review_paired(about),
        client_changed: m.activity_review_client_changed(about),
        unpaired: m.activity_review_unpaired(about),
        asks_itself: m.activity_review_asks_itself(about),
        asked_here: m.activity_review_asked_here(about),
        token_needed: m.activity_review_token_needed(),
        token_not_needed: m.activity_review_token_not_needed(),
        walk_ins_asked: m.activity_review_walk_ins_asked(),
        walk_ins_allowed: m.activity_review_walk_ins_allowed(),
        pages: what.subject === "" ? m.activity_review_no_pages() : m.activity_review_pages(about),
      };
      return words[what.of].trim();
    }
    case "change": {
      const about = { what: what.subject ?? "" };
      const words = {
        added: m.activity_change_added(),
        edited: m.activity_change_edited(),
        removed: m.activity_change_removed(),
        turned_on: m.activity_change_turned_on(),
        turned_off: m.activity_change_turned_off(),
        tool_turned_on: m.activity_change_tool_turned_on(about),
        tool_turned_off: m.activity_change_tool_turned_off(about),
        auto_approve: m.activity_change_auto_approve(),
        secret_set: m.activity_change_secret_set(about),
        secret_forgotten: m.activity_change_secret_forgotten(about),
        file_added: m.activity_change_file_added(),
        file_edited: m.activity_change_file_edited(),
        file_removed: m.activity_change_file_removed(),
        paused: what.server === null ? m.activity_change_paused_all() : m.activity_change_paused(),
        resumed: what.server === null ? m.activity_change_resumed_all() : m.activity_change_resumed(),
      };
      return words[what.change].replace(/ {2,}/g, " ");
    }
    case "lost":
      return m.activity_lost({ count: what.entries });
  }
}

/** The connector it is about. */
export function serverOf({ what }: ActivityEntry): string | null {
  return what.kind === "lost" ? null : what.server;
}

export function argumentsOf({ what }: ActivityEntry): Arguments | null {
  return what.kind === "call" || what.kind === "prompt" ? what.arguments : null;
}

/** "path (12 characters), lines (3 items), force: true"; empty where nothing was sent along. */
export function argumentWords({ kept, value }: Arguments): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "";
  const members = Object.entries(value);
  if (kept === "full") return members.map(([name, one]) => `${name}: ${JSON.stringify(one)}`).join(", ");
  return members.map(([name, one]) => member(name, one ?? null)).join(", ");
}

function member(name: string, shape: JsonValue): string {
  if (typeof shape !== "string") {
    const inner = typeof shape === "object" && shape !== null;
    return inner ? `${name} (${argumentWords({ kept: "shape", value: shape })})` : `${name}: ${String(shape)}`;
  }
  return name === "…" ? `… ${shape}` : `${name} (${size(shape)})`;
}

function size(shape: string): string {
  const count = Number(/\((\d+)\)$/.exec(shape)?.[1] ?? 0);
  if (shape.startsWith("text(")) return m.activity_size_text({ count });
  if (shape.startsWith("list(")) return m.activity_size_list({ count });
  if (shape.startsWith("object(")) return m.activity_size_object({ count });
  return m.activity_size_number();
}

/** The name of whoever did it, as the question named it. */
export function whoWords({ kind, client_name, program_name }: ActivityWho): string {
  if (client_name) return client_name;
  if (program_name) return program_name;
  switch (kind) {
    case "owner":
      return m.activity_owner();
    case "walk_in":
      return m.activity_walk_in();
    case "client":
      return m.activity_client();
    case "itself":
      return m.activity_itself();
  }
}

/**
 * "Failed: the tool reported an error"; of what went well, who let it. Null where there was nothing that could have gone
 * otherwise.
 */
export function outcomeWords({ outcome, code, allowed_by, what }: ActivityEntry): string | null {
  const isDecided = allowed_by.by !== "nobody" && allowed_by.by !== "owner";
  if (outcome === "ok") {
    if (what.kind === "change" || what.kind === "review" || what.kind === "lost") return null;
    return isDecided && what.kind !== "question" ? allowedWords(allowed_by) : ended(outcome);
  }
  if (outcome === "denied" && allowed_by.by === "rule") return m.activity_blocked_by_rule();
  const why = outcome === "denied" && isDecided ? allowedWords(allowed_by) : codeWords(code);
  return why === null ? ended(outcome) : `${ended(outcome)}: ${why}`;
}

export function ended(outcome: ActivityOutcome): string {
  switch (outcome) {
    case "ok":
      return m.activity_ok();
    case "failed":
      return m.activity_failed();
    case "denied":
      return m.activity_denied();
    case "cancelled":
      return m.activity_cancelled();
  }
}

const codes: Record<string, () => string> = {
  tool_error: m.activity_code_tool_error,
  upstream_timeout: m.activity_code_upstream_timeout,
  upstream_error: m.activity_code_upstream_error,
  disabled: m.activity_code_disabled,
  unavailable: m.activity_code_unavailable,
  needs_sign_in: m.activity_code_needs_sign_in,
  needs_secret: m.activity_code_needs_secret,
  keychain_unavailable: m.activity_code_keychain_unavailable,
  needs_review: m.activity_code_needs_review,
  tool_changed: m.activity_code_tool_changed,
  rate_limited: m.activity_code_rate_limited,
  not_found: m.activity_code_not_found,
  bad_request: m.activity_code_bad_request,
  result_too_large: m.activity_code_result_too_large,
  expired: m.activity_code_expired,
};

/** Codes that say no more than the outcome are left out. */
function codeWords(code: string | undefined): string | null {
  if (code === undefined || code === "denied" || code === "failed") return null;
  return codes[code]?.() ?? code.replaceAll("_", " ");
}

/** Who let it happen, or did not. */
export function allowedWords(by: AllowedBy): string {
  switch (by.by) {
    case "owner":
      return m.activity_by_owner();
    case "nobody":
      return m.activity_by_nobody();
    case "rule":
      return m.activity_by_rule({ name: by.name ?? by.rule });
    case "person": {
      const words = {
        once: m.activity_by_once(),
        until_quit: m.activity_by_until_quit(),
        always: m.activity_by_always(),
        denied: m.activity_by_denied(),
        unanswered: m.activity_by_unanswered(),
      };
      return words[by.answer];
    }
    case "policy": {
      const words = {
        walk_ins_may_call: m.activity_by_walk_ins_may_call(),
        asks_itself: m.activity_by_asks_itself(),
        may_not_ask: m.activity_by_may_not_ask(),
      };
      return words[by.policy];
    }
  }
}

/** A bar of the chart, in its units: heights add up to at most `height`; what happened at all is seen. */
export type Bar = { day: string; well: number; failed: number };

export function bars(days: ActivityDay[], height: number): Bar[] {
  const most = Math.max(1, ...days.map(({ calls }) => calls));
  const least = 2;
  const scaled = (count: number) => (count === 0 ? 0 : Math.max(least, (count / most) * (height - least)));
  return days.map(({ day, calls, failures }) => ({
    day,
    well: scaled(calls - failures),
    failed: scaled(failures),
  }));
}
