/**
 * JSON kept as text: checked and indented without ever passing through JavaScript numbers, so that
 * `12345678901234567890123` and `1.10` stay what was typed.
 */

export type JsonProblem = {
  kind: "unexpected" | "unfinished" | "trailing";
  /** 1-based, in characters. */
  line: number;
  column: number;
};

/** Exactly one number of RFC 8259. */
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const integer = /^-?(?:0|[1-9]\d*)$/;

export const isNumberText = (text: string): boolean => number.test(text);
export const isIntegerText = (text: string): boolean => integer.test(text);

/**
 * The first problem of a JSON text, or null. `lenient` also takes what `connectors.json` takes: comments and trailing
 * commas.
 */
export function jsonProblem(text: string, lenient = false): JsonProblem | null {
  return new Reader(text, lenient).run();
}

/** Whether the text's value is an object; the text must be free of problems. */
export function isObjectText(text: string, lenient = false): boolean {
  return new Reader(text, lenient).startsWithBrace();
}

/** The value of a checked text, for display and reading only: numbers may lose digits. */
export function readJson(text: string, lenient = false): unknown {
  return JSON.parse(lenient ? strictJson(text) : text);
}

/** A lenient text as strict JSON: comments and trailing commas become spaces, so that every place stays the same. */
export function strictJson(text: string): string {
  const blank = (part: string) => part.replace(/[^\n]/g, " ");
  return text
    .replace(commentOrText, (part) => (part.startsWith("/") ? blank(part) : part))
    .replace(commaOrText, (part) => (part === "," ? " " : part));
}

export function hasComments(text: string): boolean {
  return (text.match(commentOrText) ?? []).some((part) => part.startsWith("/"));
}

const commentOrText = /"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
const commaOrText = /"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g;

/** Strict JSON text with two spaces per level. */
export function indentJson(text: string): string {
  let out = "";
  let depth = 0;
  const newLine = () => `\n${"  ".repeat(depth)}`;
  for (const token of tokens(text)) {
    if (token === "{" || token === "[") {
      depth += 1;
      out += token + newLine();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const empty = /[[{]\s*$/.exec(out);
      out = empty ? out.trimEnd() + token : out + newLine() + token;
    } else if (token === ",") {
      out += token + newLine();
    } else if (token === ":") {
      out += ": ";
    } else {
      out += token;
    }
  }
  return out;
}

/**
 * An object's strict text with this member set to this JSON text, and every other member as it was written. The given
 * text is an object without problems.
 */
export function withMember(text: string, key: string, value: string): string {
  const found = [...text.matchAll(token)];
  let depth = 0;
  let last: RegExpExecArray | null = null;
  for (const [index, part] of found.entries()) {
    if (part[0] === "{" || part[0] === "[") depth += 1;
    if (part[0] === "}" || part[0] === "]") depth -= 1;
    const isKey = depth === 1 && found[index + 1]?.[0] === ":" && part[0].startsWith('"');
    if (isKey && JSON.parse(part[0]) === key) {
      const start = found[index + 2]?.index ?? part.index;
      return text.slice(0, start) + value + text.slice(endOfValue(found, index + 2));
    }
    if (depth > 0) last = part;
  }
  const at = last ? last.index + last[0].length : text.indexOf("{") + 1;
  return `${text.slice(0, at)}${last?.[0] === "{" ? "" : ","} ${JSON.stringify(key)}: ${value}${text.slice(at)}`;
}

/** Where the value ends that begins with this token. */
function endOfValue(found: readonly RegExpExecArray[], first: number): number {
  let depth = 0;
  for (const part of found.slice(first)) {
    if (part[0] === "{" || part[0] === "[") depth += 1;
    if (part[0] === "}" || part[0] === "]") depth -= 1;
    if (depth === 0) return part.index + part[0].length;
  }
  return found.at(-1)?.index ?? 0;
}

const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

function tokens(text: string): string[] {
  return text.match(token) ?? [];
}

class Stop {
  constructor(
    readonly kind: JsonProblem["kind"],
    readonly at: number,
  ) {}
}

const maxDepth = 128;

class Reader {
  private at = 0;
  private readonly text: string;

  constructor(
    private readonly source: string,
    lenient: boolean,
  ) {
    this.text = lenient ? strictJson(source) : source;
  }

  run(): JsonProblem | null {
    try {
      this.value(0);
      this.space();
      if (this.at < this.text.length) throw new Stop("trailing", this.at);
      return null;
    } catch (stop) {
      if (!(stop instanceof Stop)) throw stop;
      const before = this.source.slice(0, stop.at).split("\n");
      return { kind: stop.kind, line: before.length, column: [...(before.at(-1) ?? "")].length + 1 };
    }
  }

  startsWithBrace(): boolean {
    this.space();
    return this.text[this.at] === "{";
  }

  private value(depth: number): void {
    this.space();
    const next = this.text[this.at];
    if (next === "{" || next === "[") {
      if (depth === maxDepth) throw new Stop("unexpected", this.at);
      this.members(next === "{", depth);
    } else if (next === '"') this.string();
    else this.word();
  }

  private members(keyed: boolean, depth: number): void {
    const close = keyed ? "}" : "]";
    this.at += 1;
    this.space();
    if (this.text[this.at] === close) {
      this.at += 1;
      return;
    }
    for (;;) {
      if (keyed) {
        this.space();
        if (this.text[this.at] !== '"') throw this.stop();
        this.string();
        this.space();
        if (this.text[this.at] !== ":") throw this.stop();
        this.at += 1;
      }
      this.value(depth + 1);
      this.space();
      const next = this.text[this.at];
      if (next !== "," && next !== close) throw this.stop();
      this.at += 1;
      if (next === close) return;
    }
  }

  private string(): void {
    const found = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
    found.lastIndex = this.at;
    const match = found.exec(this.text);
    if (!match) throw new Stop(this.text.indexOf('"', this.at + 1) < 0 ? "unfinished" : "unexpected", this.at);
    this.at += match[0].length;
  }

  private word(): void {
    const found = /[^\s,:{}[\]"]*/y;
    found.lastIndex = this.at;
    const word = found.exec(this.text)?.[0] ?? "";
    if (!["true", "false", "null"].includes(word) && !isNumberText(word)) throw this.stop();
    this.at += word.length;
  }

  private space(): void {
    while (this.at < this.text.length && " \t\r\n".includes(this.text.charAt(this.at))) this.at += 1;
  }

  private stop(): Stop {
    return new Stop(this.at < this.text.length ? "unexpected" : "unfinished", this.at);
  }
}
