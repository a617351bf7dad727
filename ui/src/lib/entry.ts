/** One entry of `connectors.json` as text: what it runs or contacts, and how a form becomes one. Pure. */
import { indentJson, isObjectText, jsonProblem, readJson, strictJson, withMember, type JsonProblem } from "./json-text";

export type Pair = { name: string; value: string };

/** What the person consents to: all of an entry that decides what is run or contacted, and with what. */
export type Effect =
  | {
      kind: "runs";
      what: "built_in" | "download" | "program";
      command: string[];
      env: Pair[];
      envFile: string | null;
      folder: string | null;
    }
  | {
      kind: "contacts";
      url: string;
      host: string;
      headers: Pair[];
      isOldTransport: boolean;
      /** As the entry says; null where it leaves it to the server. */
      auth: string | null;
      /** The members of `oauth`. */
      signIn: Pair[];
    }
  | { kind: "unclear" };

/** Null where the text is an object; `not_object` where it is JSON of another kind. */
export function entryProblem(text: string): JsonProblem | { kind: "not_object" } | null {
  return jsonProblem(text, true) ?? (isObjectText(text, true) ? null : { kind: "not_object" });
}

/** The entry as it shows by itself: without the indentation that its place in the file gives every line but the first. */
export function withoutOuterIndent(text: string): string {
  const [first = "", ...rest] = text.split("\n");
  const indents = rest.filter((line) => line.trim() !== "").map((line) => /^[ \t]*/.exec(line)?.[0] ?? "");
  const common = indents.reduce((left, indent) => {
    const differs = [...left].findIndex((char, at) => char !== indent[at]);
    return differs < 0 ? left : left.slice(0, differs);
  }, indents[0] ?? "");
  return [first, ...rest.map((line) => (line.startsWith(common) ? line.slice(common.length) : line.trimStart()))].join(
    "\n",
  );
}

/** Reads an entry as the bridge will; `unclear` where neither a command nor an address can be seen. */
export function effectOf(text: string): Effect {
  if (entryProblem(text)) return { kind: "unclear" };
  const entry = readJson(text, true) as Record<string, unknown>;
  const { command, url } = entry;
  if (typeof command === "string" && command !== "") {
    return {
      kind: "runs",
      what: programKind(command),
      command: [command, ...(Array.isArray(entry["args"]) ? entry["args"].map(String) : [])],
      env: pairs(entry["env"]),
      envFile: textOf(entry["envFile"]),
      folder: textOf(entry["cwd"]),
    };
  }
  if (typeof url === "string" && url !== "") {
    return {
      kind: "contacts",
      url,
      host: hostOf(url),
      headers: pairs(entry["headers"]),
      isOldTransport: entry["transport"] === "sse",
      auth: textOf(entry["auth"]),
      signIn: pairs(entry["oauth"]),
    };
  }
  return { kind: "unclear" };
}

export function stdioEntry(form: { command: string; args: string[]; env: Pair[]; folder: string }): string {
  const args = form.args.filter((arg) => arg !== "");
  return objectText([
    ["transport", JSON.stringify("stdio")],
    ["command", JSON.stringify(form.command.trim())],
    ["args", args.length > 0 ? JSON.stringify(args) : null],
    ["env", pairsText(form.env)],
    ["cwd", form.folder.trim() ? JSON.stringify(form.folder.trim()) : null],
  ]);
}

export function httpEntry(form: { url: string; headers: Pair[] }): string {
  return objectText([
    ["transport", JSON.stringify("http")],
    ["url", JSON.stringify(form.url.trim())],
    ["headers", pairsText(form.headers)],
  ]);
}

/** A legal id that says what the entry is: the package or program's name, or the host's. */
export function suggestId(text: string): string {
  const effect = effectOf(text);
  switch (effect.kind) {
    case "runs": {
      const named = effect.command.slice(1).find((part) => !part.startsWith("-")) ?? effect.command[0] ?? "";
      const name =
        named
          .replace(/(.)@[^/@]*$/, "$1")
          .split(/[\\/]/)
          .at(-1) ?? "";
      return legalId(name.replace(/^(?:mcp-server|server|mcp)-|-(?:mcp-server|mcp|server)$/g, ""));
    }
    case "contacts": {
      const parts = effect.host.replace(/:\d+$/, "").split(".");
      return legalId(parts.filter((part) => !["www", "mcp", "api"].includes(part))[0] ?? "");
    }
    case "unclear":
      return "";
  }
}

/** `[A-Za-z0-9][A-Za-z0-9._-]{0,63}` */
export function isLegalId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id);
}

/** The program's name and arguments as one line; quoted where a part alone would be read as several. */
export function commandLine(parts: readonly string[]): string {
  return parts.map((part) => (/^[\w@%+=:,./~-]+$/.test(part) ? part : JSON.stringify(part))).join(" ");
}

/** The entry's strict text with these members of its `oauth` set and everything else as it was. */
export function withOAuth(text: string, members: Record<string, string | boolean>): string {
  const before = recordOf((readJson(text, true) as Record<string, unknown>)["oauth"]);
  return indentJson(withMember(strictJson(text), "oauth", JSON.stringify({ ...before, ...members })));
}

/** The entry's strict text, changed so that a key is sent instead of signing in. */
export function withKey(text: string): string {
  return indentJson(withMember(strictJson(text), "auth", JSON.stringify("token")));
}

/** The client that was registered by hand; null where the entry names none. */
export function clientOf(text: string): { id: string; issuer: string | null; hasSecret: boolean } | null {
  if (entryProblem(text)) return null;
  const { clientId, issuer, clientSecret } = recordOf((readJson(text, true) as Record<string, unknown>)["oauth"]);
  if (typeof clientId !== "string" || clientId === "") return null;
  return { id: clientId, issuer: typeof issuer === "string" ? issuer : null, hasSecret: clientSecret !== undefined };
}

/** Programs that fetch what they run. */
const runners = /^(?:npx|npm|pnpm|pnpx|yarn|bunx?|uvx?|pipx|docker|podman|dnx|deno|go)$/;

function programKind(command: string): "built_in" | "download" | "program" {
  if (command === "neuron-connectd") return "built_in";
  // A path may hold spaces; a command without arguments of its own is split at them by the bridge.
  const names = [command, command.trim().split(/\s/)[0] ?? ""].map((path) => path.split(/[\\/]/).at(-1) ?? "");
  return names.some((name) => runners.test(name.replace(/\.(?:cmd|exe)$/i, ""))) ? "download" : "program";
}

function legalId(name: string): string {
  return name
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+|-+$/g, "")
    .slice(0, 64);
}

/** As the address names it, so that look-alikes show as their ASCII form. */
export function hostOf(url: string): string {
  try {
    return new URL(url).host || url;
  } catch {
    return url;
  }
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function pairs(value: unknown): Pair[] {
  return Object.entries(recordOf(value)).map(([name, text]) => ({
    name,
    value: Array.isArray(text) ? text.join(" ") : String(text),
  }));
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function pairsText(given: Pair[]): string | null {
  const named = given.filter((pair) => pair.name.trim() !== "");
  if (named.length === 0) return null;
  return `{ ${named.map((pair) => `${JSON.stringify(pair.name.trim())}: ${JSON.stringify(pair.value)}`).join(", ")} }`;
}

function objectText(members: [string, string | null][]): string {
  const lines = members.filter(([, text]) => text !== null).map(([key, text]) => `  ${JSON.stringify(key)}: ${text}`);
  return `{\n${lines.join(",\n")}\n}`;
}
