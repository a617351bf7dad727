/** A call that waits for a yes, in one sentence. Pure. */
import type { ArgumentView, CallQuestion, ConnectorView } from "./bridge";
import * as m from "./messages";
import { firstLine } from "./plain";
import { nameWords, whoWords } from "./who";

/** What the sentence cannot hold: what it is done to; null where nothing stands for it. */
export type Headline = { title: string; object: string | null };

/** More than this, in characters or lines, is folded away. */
const longText = 400;
const longLines = 6;
/** So many characters of its first line stand in a row of a list. */
const longFirst = 80;
/** So many characters of each end are shown of what is folded. */
const longEnd = 160;
/** What is one character to a reader may be made of many; past this it is cut all the same. */
const longestCharacter = 32;

const gap = /^(?:\r\n|[\n\t\p{Zs}])+$/u;
const characters = new Intl.Segmenter(m.locale, { granularity: "grapheme" });

/** How a folded value begins and how it ends, in one line each, and how much is left out between the two. */
export type Ends = { start: string; left: number; end: string };

export function isLong({ value }: ArgumentView): boolean {
  return value.length > longText || value.split("\n").length > longLines;
}

/** How a value begins, for a row of a list. */
export function beginning({ value }: ArgumentView): string {
  return firstLine(value, longFirst);
}

/** Gaps count as one space, so that none of them pushes away what is written. */
export function endsOf({ value }: ArgumentView): Ends {
  const all = [...characters.segment(value)].flatMap(({ segment }) =>
    segment.length > longestCharacter ? [...segment] : [segment],
  );
  const start = upTo(longEnd, all);
  const end = upTo(longEnd, all.slice(start.taken).reverse());
  const between = all.slice(start.taken, all.length - end.taken);
  return { start: start.shown.join(""), left: [...between.join("")].length, end: end.shown.reverse().join("") };
}

/** The first of them, at most `most` that are shown. */
function upTo(most: number, all: readonly string[]): { shown: string[]; taken: number } {
  const shown: string[] = [];
  let taken = 0;
  for (const one of all) {
    const isGap = gap.test(one);
    if (!isGap || shown.at(-1) !== " ") {
      if (shown.length === most) break;
      shown.push(isGap ? " " : one);
    }
    taken += 1;
  }
  return { shown, taken };
}

const digits = new Intl.NumberFormat(m.locale);

/** Such as "2,140 characters". */
export function sizeWords({ size }: ArgumentView): string {
  return m.characters({ count: size, amount: digits.format(size) });
}

/** Such as "1,820 characters left out". */
export function leftWords({ left }: Ends): string {
  return m.argument_left({ count: left, amount: digits.format(left) });
}

/** What is sent of an argument and cannot be shown; null where all of it can. */
export function unseenWords({ size, value }: ArgumentView): string | null {
  const count = size - [...value].length;
  return count > 0 ? m.argument_cut({ count, amount: digits.format(count) }) : null;
}

/** Whether it is the connector of files that comes with this app: its tools can be told in words. */
export function isBuiltInFiles(connector: ConnectorView | undefined): boolean {
  return connector?.transport === "stdio" && /^neuron-connectd\s+files(?:\s|$)/.test(connector.summary);
}

export function headline(call: CallQuestion, isFiles: boolean): Headline {
  const who = whoWords(call.who);
  switch (call.subject.subject) {
    case "tool": {
      const known = isFiles ? fileVerb(call.subject.tool, who, call) : null;
      if (known) return known;
      return { title: m.wants_use({ who, tool: nameWords(call.subject.title ?? call.subject.tool) }), object: null };
    }
    case "resource":
      return { title: m.wants_resource({ who }), object: call.subject.uri };
    case "prompt":
      return { title: m.wants_prompt({ who, name: nameWords(call.subject.name) }), object: null };
  }
}

/** How far the answers reach that go beyond this one call. */
export function reachWords({ who: asker, subject }: CallQuestion): { until: string; block: string } {
  const who = whoWords(asker);
  switch (subject.subject) {
    case "tool": {
      const about = { who, what: nameWords(subject.tool) };
      return { until: m.reach_until_tool(about), block: m.reach_block_tool(about) };
    }
    case "resource":
      return { until: m.reach_until_resource({ who }), block: m.reach_block_resource({ who }) };
    case "prompt": {
      const about = { who, what: nameWords(subject.name) };
      return { until: m.reach_until_tool(about), block: m.reach_block_tool(about) };
    }
  }
}

function writeWords(writes: CallQuestion["writes"], who: string): string {
  switch (writes) {
    case "creates":
      return m.wants_create_file({ who });
    case "replaces":
      return m.wants_replace_file({ who });
    case null:
      return m.wants_write_file({ who });
  }
}

function fileVerb(tool: string, who: string, call: CallQuestion): Headline | null {
  const value = (name: string) => call.arguments.find((one) => one.name === name && one.is_text)?.value ?? null;
  const path = value("path");
  switch (tool) {
    case "read_text_file":
    case "read_file":
    case "read_media_file":
      return { title: m.wants_read_file({ who }), object: path };
    case "read_multiple_files":
      return { title: m.wants_read_files({ who }), object: null };
    case "write_file":
      return { title: writeWords(call.writes, who), object: path };
    case "edit_file":
      return { title: m.wants_edit_file({ who }), object: path };
    case "create_directory":
      return { title: m.wants_make_folder({ who }), object: path };
    case "list_directory":
    case "list_directory_with_sizes":
      return { title: m.wants_list_folder({ who }), object: path };
    case "directory_tree":
      return { title: m.wants_list_tree({ who }), object: path };
    case "move_file": {
      const [source, destination] = [value("source"), value("destination")];
      const object = source !== null && destination !== null ? `${source} → ${destination}` : source;
      return { title: m.wants_move_file({ who }), object };
    }
    case "search_files":
      return { title: m.wants_search_files({ who }), object: value("pattern") };
    case "get_file_info":
      return { title: m.wants_file_info({ who }), object: path };
    case "list_allowed_directories":
      return { title: m.wants_folder_name({ who }), object: null };
    default:
      return null;
  }
}
