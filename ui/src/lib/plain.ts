/**
 * Characters that hide or reorder text: controls, zero-width, bidirectional overrides, tags. Joiners and direction
 * marks stay, because emoji and right-to-left scripts need them.
 */
export const hidden =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** At most this many characters, so that a name cannot push away what stands after it. */
export function shortened(text: string, most: number): string {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most).join("")}…` : text;
}

/** An upstream's text with hidden characters made visible, such as `⟨U+202E⟩`. Still text: never for `{@html}`. */
export function plain(text: string): string {
  return text.replace(hidden, (found) => {
    const code = found.codePointAt(0) ?? 0;
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}
