/** Keys that stand in plain text in an entry, or whose place something else holds, and the entry with references to the keychain in their place. Pure. */
import { entryProblem, type Pair } from "./entry";
import { indentJson, readJson, strictJson, withMember } from "./json-text";

/** What belongs into the keychain under this name. */
export type PlainKey = { name: string; value: string };

/** Keys found, and the entry without them; the text as it was where there are none. */
export type Kept = { entry: string; keys: PlainKey[] };

/** Looks where the bridge takes `${secret:NAME}`: headers, environment, arguments, and the query of an address. */
export function withoutPlainKeys(text: string): Kept {
  return without(text, isPlainKey);
}

/** Likewise of what only holds a key's place, such as `YOUR_API_KEY` or `<token>`; `value` is what stood there. */
export function withoutStandIns(text: string): Kept {
  return without(text, isStandIn);
}

function without(text: string, isOne: IsOne): Kept {
  if (entryProblem(text)) return { entry: text, keys: [] };
  const entry = readJson(text, true) as Record<string, unknown>;
  const taken = new Set([...text.matchAll(/\$\{secret:([^}]+)\}/g)].map((match) => match[1] ?? ""));
  const keys: PlainKey[] = [];

  /** The reference for a value. */
  const keep = (label: string, value: string): string => {
    const same = keys.find((key) => key.value === value);
    const name = same?.name ?? freeName(label, taken);
    if (!same) keys.push({ name, value });
    taken.add(name);
    return `\${secret:${name}}`;
  };
  const named = (value: unknown) =>
    isRecord(value)
      ? Object.fromEntries(
          Object.entries(value).map(([name, one]) => [
            name,
            typeof one === "string" ? keepValue(name, one, keep, isOne) : one,
          ]),
        )
      : value;

  const found: [string, unknown][] = [
    ["headers", named(entry["headers"])],
    ["env", named(entry["env"])],
    ["args", Array.isArray(entry["args"]) ? keepArgs(entry["args"], keep, isOne) : entry["args"]],
    ["url", typeof entry["url"] === "string" ? keepQuery(entry["url"], keep, isOne) : entry["url"]],
  ];
  if (keys.length === 0) return { entry: text, keys };
  const changed = found.filter(([member, value]) => JSON.stringify(value) !== JSON.stringify(entry[member]));
  const strict = changed.reduce(
    (left, [member, value]) => withMember(left, member, JSON.stringify(value)),
    strictJson(text),
  );
  return { entry: indentJson(strict), keys };
}

/** A pair of a form, which the person may have marked as a key. */
export type MarkedPair = Pair & { isKey: boolean };

/** The pairs as they are written, and the keys among them that the person marked; an empty one is asked for later. */
export function withoutMarked(pairs: readonly MarkedPair[]): { pairs: Pair[]; keys: PlainKey[] } {
  const taken = new Set<string>();
  const keys: PlainKey[] = [];
  const written = pairs.map(({ name, value, isKey }) => {
    if (!isKey || name.trim() === "") return { name, value };
    const key = freeName(name, taken);
    taken.add(key);
    keys.push({ name: key, value });
    return { name, value: `\${secret:${key}}` };
  });
  return { pairs: written, keys };
}

type Keep = (label: string, value: string) => string;

/** Whether this value is what is looked for. `isNamed` where what stands around it says that a key belongs there. */
type IsOne = (value: string, isNamed: boolean) => boolean;

const isPlainKey: IsOne = (value, isNamed) => isLiteral(value) && (isNamed || isKnownKey(value));
const isStandIn: IsOne = (value, isNamed) => isBlank(value) && (isNamed || isKeyName(value));

/** Whether a header or variable holds a key in plain text. */
export function isKeyInPlain(name: string, value: string): boolean {
  const [scheme, key] = cutScheme(value);
  return isPlainKey(key, scheme !== "" || isKeyName(name));
}

function cutScheme(value: string): [string, string] {
  const [, scheme = "", key = ""] = /^((?:Bearer|Basic|Token|ApiKey)\s+)?(.*)$/is.exec(value.trim()) ?? [];
  return [scheme, key];
}

/** A header or a variable: a scheme before the key stays. */
function keepValue(name: string, value: string, keep: Keep, isOne: IsOne): string {
  const [scheme, key] = cutScheme(value);
  if (!isOne(key, scheme !== "" || isKeyName(name))) return value;
  return scheme + keep(/authorization$/i.test(name) ? "TOKEN" : name, key);
}

function keepArgs(args: unknown[], keep: Keep, isOne: IsOne): unknown[] {
  return args.map((arg, index) => {
    if (typeof arg !== "string") return arg;
    if (/^https?:\/\//i.test(arg)) return keepQuery(arg, keep, isOne);
    const before = args[index - 1];
    const isOption = typeof before === "string" && /^--?[A-Za-z][\w-]*$/.test(before);
    if (isOption && !arg.startsWith("-") && isKeyName(before) && isOne(arg, true)) return keep(before, arg);
    // --token=…, API_KEY=… after -e, "Authorization: Bearer …" after --header.
    const [, label = "", name = "", value = ""] = /^(-{0,2}([A-Za-z][\w.-]*)\s*[=:]\s*)(.+)$/s.exec(arg) ?? [];
    if (name !== "") return label + keepValue(name, value, keep, isOne);
    return isOne(arg, false) ? keep("API_KEY", arg) : arg;
  });
}

function keepQuery(url: string, keep: Keep, isOne: IsOne): string {
  const [before = "", rest = ""] = cut(url, "?");
  const [query = "", after = ""] = cut(rest, "#");
  const kept = query.replace(/([^&=]+)=([^&]*)/g, (pair: string, name: string, value: string) =>
    isOne(decoded(value), isKeyName(name)) ? `${name}=${keep(name, decoded(value))}` : pair,
  );
  return before + kept + after;
}

/** The text up to this mark with it, and what follows. */
function cut(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  if (mark === "#") return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at)];
  return at < 0 ? [text, ""] : [text.slice(0, at + 1), text.slice(at + 1)];
}

const keyWords = new Set([
  ...["key", "apikey", "accesskey", "token", "accesstoken", "secret", "password", "passwd", "pwd", "pat"],
  ...["authorization", "credential", "credentials", "cookie"],
]);

/** Whether what has this name is a key: `X-Api-Key`, `githubToken`, `--api-key`; not `MAX_TOKENS`, `KEY_FILE`. */
function isKeyName(name: string): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return keyWords.has(words.filter((word) => word !== "").at(-1) ?? "");
}

/** Begins as well-known services let their keys begin. */
function isKnownKey(value: string): boolean {
  return /^(?:sk-|sk_live_|sk_test_|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abp]-|AKIA|AIza|figd_|ntn_|lin_api_|hf_|npm_|eyJ)[\w.-]{10,}$/.test(
    value,
  );
}

/** Something that is to be filled in yet. */
function isBlank(value: string): boolean {
  return /^(?:<.*>|\[.*\]|\{.*\}|(?:[a-z0-9]+[-_])*[x*.…]{3,}|[x*.…]+|(?:your|my|enter|insert|paste|replace|change)[-_ ].*|your\w+|change-?me|.+[-_ ]here)$/is.test(
    value,
  );
}

/** A value itself: no reference, no path, no number or switch, and nothing that is to be filled in yet. */
function isLiteral(value: string): boolean {
  if (value === "" || value.includes("${") || /^[./~\\]/.test(value)) return false;
  if (/^(?:true|false|null|none|\d{1,4})$/i.test(value)) return false;
  return !isBlank(value);
}

function freeName(label: string, taken: ReadonlySet<string>): string {
  const upper = label
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "");
  const name = /^[A-Z]/.test(upper) ? upper.slice(0, 60) : `KEY_${upper}`.slice(0, 60).replace(/_$/, "");
  for (let number = 1; ; number += 1) {
    const tried = number === 1 ? name : `${name}_${number}`;
    if (!taken.has(tried)) return tried;
  }
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
