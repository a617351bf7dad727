/** What changed between two texts. Pure. */

export type Part = { kind: "same" | "gone" | "new"; text: string };

/** Most comparisons of one diff; beyond them everything between the common ends counts as changed. */
const most = 4_000_000;

const word = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;

/** Word by word. */
export function wordDiff(before: string, now: string): Part[] {
  return diff(before.match(word) ?? [], now.match(word) ?? []);
}

/** Line by line; each line keeps its end. */
export function lineDiff(before: string, now: string): Part[] {
  const lines = (text: string) => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  return diff(lines(before), lines(now));
}

/** The parts as one of the two sides shows them. */
export function sideOf(parts: readonly Part[], side: "gone" | "new"): Part[] {
  return parts.filter(({ kind }) => kind === "same" || kind === side);
}

function diff(before: readonly string[], now: readonly string[]): Part[] {
  let start = 0;
  while (start < before.length && start < now.length && before[start] === now[start]) start += 1;
  let [left, right] = [before.length, now.length];
  while (left > start && right > start && before[left - 1] === now[right - 1]) [left, right] = [left - 1, right - 1];

  const parts: Part[] = [];
  add(parts, "same", before.slice(0, start));
  const middle = [before.slice(start, left), now.slice(start, right)] as const;
  if (middle[0].length * middle[1].length > most) {
    add(parts, "gone", middle[0]);
    add(parts, "new", middle[1]);
  } else {
    addCompared(parts, ...middle);
  }
  add(parts, "same", before.slice(left));
  return parts;
}

/** By the longest common run of items, in order. */
function addCompared(parts: Part[], before: readonly string[], now: readonly string[]): void {
  const width = now.length + 1;
  // Length of what is common from (row, column) on.
  const common = new Uint32Array((before.length + 1) * width);
  const at = (row: number, column: number) => common[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = now.length - 1; column >= 0; column -= 1) {
      common[row * width + column] =
        before[row] === now[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  let [row, column] = [0, 0];
  while (row < before.length || column < now.length) {
    if (row < before.length && column < now.length && before[row] === now[column]) {
      add(parts, "same", before.slice(row, row + 1));
      [row, column] = [row + 1, column + 1];
    } else if (row < before.length && (column === now.length || at(row + 1, column) >= at(row, column + 1))) {
      add(parts, "gone", before.slice(row, row + 1));
      row += 1;
    } else {
      add(parts, "new", now.slice(column, column + 1));
      column += 1;
    }
  }
}

function add(parts: Part[], kind: Part["kind"], items: readonly string[]): void {
  if (items.length === 0) return;
  const last = parts.at(-1);
  if (last?.kind === kind) last.text += items.join("");
  else parts.push({ kind, text: items.join("") });
}
