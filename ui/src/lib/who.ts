/** Whoever asks, in words. Their names are their own: text, never markup. */
import type { ToolHints, WhoView } from "./bridge";
import * as m from "./messages";
import { plain, shortened } from "./plain";

/** In a sentence a name takes at most this many characters; the whole one stands below it. */
const longestName = 60;

/** As the beginning of a sentence. */
export function whoWords({ name }: WhoView): string {
  return nameWords(name).trim() || m.who_unknown();
}

/** A connector's or tool's name inside a sentence. */
export function nameWords(name: string): string {
  return shortened(plain(name), longestName);
}

/** The same for two questions of the same caller, whichever of its processes asks. */
export function callerKey({ kind, client, name, program }: WhoView): string {
  if (client !== null) return JSON.stringify([kind, client]);
  if (program === null) return JSON.stringify([kind, name]);
  return JSON.stringify([kind, program.path ?? program.pid, program.script]);
}

/** What an upstream says of its own tool; nobody has checked it. */
export function claims({ read_only, destructive, open_world }: ToolHints): string[] {
  const said: string[] = [];
  if (read_only === true) said.push(m.says_read_only());
  else if (destructive === true) said.push(m.says_destructive());
  else if (destructive === false) said.push(m.says_additive());
  else if (read_only === false) said.push(m.says_changes());
  if (open_world === true) said.push(m.says_open_world());
  return said.length > 0 ? said : [m.says_nothing()];
}
