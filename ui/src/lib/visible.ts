/** A text taken apart so that what it hides can be marked. Pure. */
import { hidden } from "./plain";

export type Piece =
  | { kind: "text"; text: string }
  /** The same hidden character, `count` times in a row; `name` such as `U+200B`. */
  | { kind: "hidden"; name: string; count: number }
  /** Words written in characters that nothing shows (Unicode tags), as they read. */
  | { kind: "secret_words"; text: string };

const tags = /[\u{e0020}-\u{e007e}]/u;
/** Joiners and direction marks are part of emoji and of many scripts; between plain ASCII they only hide. */
const joiner = /[\u200c-\u200f]/;
/** Selectors and characters without an agreed look. */
const odd = /[\u{e0100}-\u{e01ef}\ue000-\uf8ff\u{f0000}-\u{10ffff}]/u;
const marked = new RegExp([hidden.source, joiner.source, odd.source].join("|"), "gu");

export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(marked)) {
    if (joiner.test(match[0]) && joinsLetters(text, match.index)) continue;
    if (match.index > end) found.push({ kind: "text", text: text.slice(end, match.index) });
    addHidden(found, match[0]);
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push({ kind: "text", text: text.slice(end) });
  return found;
}

export function hidesSomething(text: string): boolean {
  return pieces(text).some(({ kind }) => kind !== "text");
}

/** Whether the nearest character on one of its sides is one that joiners are made for. */
function joinsLetters(text: string, at: number): boolean {
  const isJoined = (place: number, step: number): boolean => {
    while (joiner.test(text.charAt(place))) place += step;
    return text.charCodeAt(place) > 0x7f;
  };
  return isJoined(at - 1, -1) || isJoined(at + 1, 1);
}

function addHidden(found: Piece[], character: string): void {
  const code = character.codePointAt(0) ?? 0;
  const last = found.at(-1);
  if (tags.test(character)) {
    const read = String.fromCharCode(code - 0xe0000);
    if (last?.kind === "secret_words") last.text += read;
    else found.push({ kind: "secret_words", text: read });
    return;
  }
  const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  if (last?.kind === "hidden" && last.name === name) last.count += 1;
  else found.push({ kind: "hidden", name, count: 1 });
}
