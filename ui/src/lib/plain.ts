/** Somebody else's words within a sentence of ours, as text. Pure. */
import { pieces } from "./visible";

/** At most this many characters, so that a name cannot push away what stands after it. */
export function shortened(text: string, most: number): string {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most).join("")}…` : text;
}

/** Its first line with something on it, at most `most` characters of that; it ends in "…" where the text goes on. */
export function firstLine(text: string, most: number): string {
  const whole = text.trim();
  const line = whole.split("\n", 1)[0] ?? "";
  const start = shortened(line.trimEnd(), most);
  return line === whole || start.endsWith("…") ? start : `${start}…`;
}

/** An upstream's text with what it hides made visible, such as `⟨U+202E⟩`. Still text: never for `{@html}`. */
export function plain(text: string): string {
  return pieces(text)
    .map((piece) => {
      switch (piece.kind) {
        case "text":
          return piece.text;
        case "hidden":
          return stood(piece.name, piece.count);
        case "secret_words":
          return `⟨hidden: ${piece.text}⟩`;
      }
    })
    .join("");
}

/** What stands in the place of hidden characters: the pictures of controls, names of all others. */
function stood(name: string, count: number): string {
  const code = Number.parseInt(name.slice(2), 16);
  if (code > 0x1f && code !== 0x7f) return count === 1 ? `⟨${name}⟩` : `⟨${name}×${count}⟩`;
  const picture = String.fromCharCode(code === 0x7f ? 0x2421 : 0x2400 + code);
  return count <= 3 ? picture.repeat(count) : `⟨${picture}×${count}⟩`;
}
