/**
 * A text taken apart so that what it hides can be marked: the same characters, in the same places, that the bridge's scan
 * finds. Pure.
 */
import { classes, places, type Range } from "./hidden";

export type Piece =
  | { kind: "text"; text: string }
  /** The same hidden character, `count` times in a row; `name` such as `U+200B`. */
  | { kind: "hidden"; name: string; count: number }
  /** Words written in characters that nothing shows, as they read. */
  | { kind: "secret_words"; text: string };

type Kind = keyof typeof classes;
/** Hidden characters of one kind that follow each other. */
type Run = { kind: Kind; start: number; end: number };

/** Anything but printable ASCII, lines and tabs. */
const unplain = /[^\n\t\x20-\x7e]/;
/** The black flag, which tag letters after it make the flag of a part of a country. */
const flag = 0x1f3f4;
const flagTags = /^[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{3,5}\u{e007f}/u;
/** A mark of direction belongs to letters at most so many characters away. */
const near = 6;

const stretches = (Object.entries(classes) as [Kind, readonly Range[]][])
  .flatMap(([kind, ranges]) => ranges.map((range) => ({ kind, range })))
  .sort((one, other) => one.range[0] - other.range[0]);

export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const run of runs(text)) {
    if (run.start > end) found.push({ kind: "text", text: text.slice(end, run.start) });
    end = run.end;
    const hidden = text.slice(run.start, run.end);
    const words = spelled(run.kind, hidden);
    if (words !== null) found.push({ kind: "secret_words", text: words });
    else for (const piece of repeated(hidden)) found.push(piece);
  }
  if (end < text.length) found.push({ kind: "text", text: text.slice(end) });
  return found;
}

export function hidesSomething(text: string): boolean {
  return runs(text).length > 0;
}

function runs(text: string): Run[] {
  if (!unplain.test(text)) return [];
  const found: Run[] = [];
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at) ?? 0;
    const end = at + width(code);
    if (code === flag) {
      at = end + (flagTags.exec(text.slice(end, end + 12))?.[0].length ?? 0);
      continue;
    }
    const kind = kindOf(code);
    if (kind !== null && !isInOrder(code, text, at, end)) {
      const last = found.at(-1);
      if (last?.kind === kind && last.end === at) last.end = end;
      else found.push({ kind, start: at, end });
    }
    at = end;
  }
  return found;
}

function repeated(hidden: string): Piece[] {
  const found: Extract<Piece, { kind: "hidden" }>[] = [];
  for (const character of hidden) {
    const name = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
    const last = found.at(-1);
    if (last?.name === name) last.count += 1;
    else found.push({ kind: "hidden", name, count: 1 });
  }
  return found;
}

/** Which kind of hidden character it is, wherever it stands. */
function kindOf(code: number): Kind | null {
  if (code >= 0x20 && code <= 0x7e) return null;
  let [low, high] = [0, stretches.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const stretch = stretches[middle];
    if (!stretch) return null;
    if (code < stretch.range[0]) high = middle;
    else if (code > stretch.range[1]) low = middle + 1;
    else return stretch.kind;
  }
  return null;
}

function isOf(place: keyof typeof places, code: number | null): boolean {
  const ranges: readonly Range[] = places[place];
  return code !== null && ranges.some(([first, last]) => first <= code && code <= last);
}

/** Whether a hidden character belongs where it stands. */
function isInOrder(code: number, text: string, start: number, end: number): boolean {
  const previous = codeBefore(text, start);
  const next = text.codePointAt(end) ?? null;
  switch (code) {
    case 0x0d:
      return next === 0x0a;
    case 0x200d:
      return (
        ((isOf("pictograph", previous) || previous === 0xfe0f || previous === 0xe007f) && isOf("pictograph", next)) ||
        (isOf("joining", previous) && (next === null || isOf("joining", next) || isOf("gap", next)))
      );
    case 0x200c:
      return isOf("joining", previous) && isOf("joining", next);
    case 0xfe0e:
    case 0xfe0f:
      return isOf("pictograph", previous) || (isKeycap(previous) && next === 0x20e3);
    case 0x2800:
      return isOf("braille", previous) || isOf("braille", next);
    case 0x200e:
    case 0x200f:
    case 0x061c:
      return !isDirectionMark(previous) && isNearRightToLeft(text, start, end);
    default:
      if ((code >= 0xfe00 && code <= 0xfe02) || (code >= 0xe0100 && code <= 0xe01ef)) return isOf("han", previous);
      if (code >= 0x180b && code <= 0x180f) return isOf("mongolian", previous);
      return false;
  }
}

function isKeycap(code: number | null): boolean {
  return code !== null && /^[0-9#*]$/.test(String.fromCodePoint(code));
}

function isDirectionMark(code: number | null): boolean {
  return code === 0x200e || code === 0x200f || code === 0x061c;
}

function isNearRightToLeft(text: string, start: number, end: number): boolean {
  let at = start;
  for (let count = 0; count < near && at > 0; count += 1) {
    const code = codeBefore(text, at) ?? 0;
    if (isOf("right_to_left", code)) return true;
    at -= width(code);
  }
  at = end;
  for (let count = 0; count < near && at < text.length; count += 1) {
    const code = text.codePointAt(at) ?? 0;
    if (isOf("right_to_left", code)) return true;
    at += width(code);
  }
  return false;
}

function codeBefore(text: string, at: number): number | null {
  if (at === 0) return null;
  const whole = at > 1 ? (text.codePointAt(at - 2) ?? 0) : 0;
  return whole > 0xffff ? whole : text.charCodeAt(at - 1);
}

const width = (code: number) => (code > 0xffff ? 2 : 1);

/** The text that invisible characters spell, where they spell one. */
function spelled(kind: Kind, hidden: string): string | null {
  const codes = [...hidden].map((character) => character.codePointAt(0) ?? 0);
  const text = kind === "tag" ? ofTags(codes) : kind === "selector" ? ofSelectors(codes) : null;
  if (text === null) return null;
  const letters = [...text];
  const isShown = (letter: string) => /[\n\t]/.test(letter) || kindOf(letter.codePointAt(0) ?? 0) === null;
  return letters.length > 1 && letters.every(isShown) ? text : null;
}

function ofTags(codes: readonly number[]): string {
  const letters = codes.map((code) => code - 0xe0000).filter((code) => code >= 0x20 && code < 0x7f);
  return letters.map((code) => String.fromCharCode(code)).join("");
}

function ofSelectors(codes: readonly number[]): string | null {
  const bytes = codes.flatMap((code) => {
    if (code >= 0xfe00 && code <= 0xfe0f) return [code - 0xfe00];
    return code >= 0xe0100 ? [code - 0xe0100 + 16] : [];
  });
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    return null;
  }
}
