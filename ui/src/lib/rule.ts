/** Rules as a person makes them: which conditions an argument offers, and the rule in one sentence. Pure. */
import type { ArgumentCondition, ArgumentView, Rule, RuleDraft } from "./bridge";
import { withMember } from "./json-text";
import * as m from "./messages";
import { plain, shortened } from "./plain";

export type RuleView = {
  rule: Rule;
  server_name: string;
  /** The whole rule in one sentence. */
  sentence: string;
  /** How often it decided something. */
  used: number;
  /** Unix milliseconds. */
  last_used_at?: number;
  /** Why it decides nothing at present. */
  sleeps: "review" | "elsewhere" | "changed" | "expired" | null;
};

/** In a sentence a value takes at most this many characters. */
const longestValue = 80;

/** What a person may choose of one argument. */
export type Wish =
  | { is: "any" }
  | { is: "absent" }
  /** `json` is the value's JSON text, as it was given. */
  | { is: "equals"; json: string }
  | { is: "one_of"; json: string }
  | { is: "url"; address: string }
  | { is: "inside"; folder: string };

export type ArgumentWish = {
  name: string;
  /** As a person reads it; null where the call did not give it. */
  shown: string | null;
  /** What can be chosen, each as it would begin. */
  offers: Wish[];
  chosen: Wish;
};

/** Each argument of the draft and of the call, with what can be said of it. */
export function wishesOf(draft: RuleDraft, given: readonly ArgumentView[], isLocal: boolean): ArgumentWish[] {
  const conditions = draft.arguments.which === "each" ? draft.arguments.conditions : {};
  const names = [...new Set([...given.map(({ name }) => name), ...Object.keys(conditions)])];
  return names.map((name) => {
    const argument = given.find((one) => one.name === name);
    const condition = Object.hasOwn(conditions, name) ? conditions[name] : undefined;
    const offers = offersOf(argument, condition, isLocal);
    const first = condition?.is ?? (draft.arguments.which === "each" && argument ? "equals" : "any");
    const chosen = offers.find(({ is }) => is === first) ?? { is: "any" };
    return { name, shown: argument?.value ?? shownOf(condition), offers, chosen };
  });
}

function offersOf(
  argument: ArgumentView | undefined,
  condition: ArgumentCondition | undefined,
  isLocal: boolean,
): Wish[] {
  const offers: Wish[] = [{ is: "any" }];
  if (!argument || condition?.is === "absent") offers.push({ is: "absent" });
  if (argument) offers.push({ is: "equals", json: jsonOf(argument) });
  else if (condition?.is === "equals") offers.push({ is: "equals", json: JSON.stringify(condition.value) });
  if (condition?.is === "one_of") offers.push({ is: "one_of", json: JSON.stringify(condition.values) });
  if (condition?.is === "url") offers.push({ is: "url", address: addressOf(condition) });
  else if (argument?.is_text && siteOf(argument.value)) {
    offers.push({ is: "url", address: argument.value.split(/[?#]/)[0] ?? "" });
  }
  if (condition?.is === "inside") offers.push({ is: "inside", folder: condition.folder });
  else if (isLocal && argument?.is_text && !siteOf(argument.value) && looksLikePath(argument.value)) {
    offers.push({ is: "inside", folder: folderOf(argument.value) });
  }
  return offers;
}

/** The condition's JSON text; null where what was written is none. */
export function conditionText(wish: Wish): string | null {
  switch (wish.is) {
    case "any":
      return '{"is":"any"}';
    case "absent":
      return '{"is":"absent"}';
    case "equals":
      return `{"is":"equals","value":${wish.json}}`;
    case "one_of":
      return `{"is":"one_of","values":${wish.json}}`;
    case "url": {
      const site = siteOf(wish.address);
      return site && JSON.stringify({ is: "url", ...site });
    }
    case "inside":
      return wish.folder.trim() === "" ? null : JSON.stringify({ is: "inside", folder: wish.folder.trim() });
  }
}

/** The draft with these wishes as its arguments, as JSON text; null where one of them is unfinished. */
export function draftText(draft: RuleDraft, wishes: readonly ArgumentWish[] | "any"): string | null {
  if (wishes === "any") return withMember(JSON.stringify(draft), "arguments", '{"which":"any"}');
  const conditions: string[] = [];
  for (const { name, chosen } of wishes) {
    const text = conditionText(chosen);
    if (text === null) return null;
    conditions.push(`${JSON.stringify(name)}:${text}`);
  }
  const each = `{"which":"each","conditions":{${conditions.join(",")}}}`;
  return withMember(JSON.stringify(draft), "arguments", each);
}

/** Whether it is not for every call, whatever the arguments. */
export function hasConditions({ arguments: given }: RuleDraft): boolean {
  return given.which === "each" && Object.values(given.conditions).some(({ is }) => is !== "any");
}

/** Such as "Claude Code may use write_file of Files without asking, if “path” is in the folder /home/ada/notes." */
export function ruleSentence(parts: {
  who: string;
  effect: RuleDraft["effect"];
  kind: RuleDraft["kind"];
  what: string;
  connector: string;
  wishes: readonly ArgumentWish[] | "any";
  until: string | null;
}): string {
  const { effect, kind, wishes, until } = parts;
  const said = wishes === "any" ? [] : wishes.map(wishWords).filter((words) => words !== null);
  const start = startWords(effect, kind)(parts);
  const how = said.length > 0 ? m.rule_if({ conditions: conditionsWords(effect, said) }) : "";
  const free = effect === "allow" && said.length === 0 && (wishes === "any" || wishes.length > 0);
  return `${start}${how}${free ? m.rule_whatever() : ""}${until === null ? "" : m.rule_until({ until })}.`;
}

/** A rule that forbids holds for what may be meant as well. */
function conditionsWords(effect: RuleDraft["effect"], said: readonly string[]): string {
  const conditions = said.join(m.rule_and());
  switch (effect) {
    case "allow":
      return conditions;
    case "deny":
      return m.rule_unless_certain({ conditions });
  }
}

function startWords(effect: RuleDraft["effect"], kind: RuleDraft["kind"]): typeof m.rule_may {
  switch (kind) {
    case "tools":
    case "prompts":
      return effect === "allow" ? m.rule_may : m.rule_may_not;
    case "resources":
      return effect === "allow" ? m.rule_may_read : m.rule_may_not_read;
  }
}

function wishWords({ name: raw, chosen }: ArgumentWish): string | null {
  const name = plain(raw);
  switch (chosen.is) {
    case "any":
      return null;
    case "absent":
      return m.rule_absent({ name });
    case "equals":
      return m.rule_equals({ name, value: shortened(plain(chosen.json), longestValue) });
    case "one_of":
      return m.rule_one_of({ name, values: shortened(plain(chosen.json.slice(1, -1)), longestValue) });
    case "url":
      return m.rule_url({ name, address: plain(chosen.address) });
    case "inside":
      return m.rule_inside({ name, folder: plain(chosen.folder) });
  }
}

function jsonOf({ value, is_text }: ArgumentView): string {
  return is_text ? JSON.stringify(value) : value;
}

function shownOf(condition: ArgumentCondition | undefined): string | null {
  switch (condition?.is) {
    case "equals":
      return typeof condition.value === "string" ? condition.value : JSON.stringify(condition.value);
    case "one_of":
      return JSON.stringify(condition.values);
    case undefined:
    case "any":
    case "absent":
    case "url":
    case "inside":
      return null;
  }
}

function addressOf({ origin, path }: { origin: string; path: string[] }): string {
  return `${origin}/${path.map(encodeURIComponent).join("/")}`;
}

/** A web address's origin and the whole segments of its path. */
export function siteOf(text: string): { origin: string; path: string[] } | null {
  let url: URL;
  try {
    url = new URL(text.trim());
    if ((url.protocol !== "https:" && url.protocol !== "http:") || url.username || url.password) return null;
    const path = url.pathname.split("/").filter((segment) => segment !== "");
    return { origin: url.origin, path: path.map(decodeURIComponent) };
  } catch {
    return null;
  }
}

function looksLikePath(text: string): boolean {
  return text.length < 1_000 && !/[\n\0]/.test(text) && (/[\\/]/.test(text) || /^[\w.-]+\.\w{1,8}$/.test(text));
}

/** Of a whole path the folder it lies in; of another nothing, as where it begins is not known here. */
function folderOf(path: string): string {
  const folder = /^(\/.*|[A-Za-z]:[\\/].*)[\\/][^\\/]*$/.exec(path)?.[1];
  return folder ?? "";
}
