/** Whose calls are let through without a question here, though no rule says so. Pure. */
import type { AskerView, ClientView, TrustView } from "./bridge";
import * as m from "./messages";
import { plain } from "./plain";
import { nameWords } from "./who";

export type Exempt = { key: string; words: string };

export function notAsked(
  { api_mode, walk_in }: Pick<TrustView, "api_mode" | "walk_in">,
  { clients, askers }: { clients: readonly ClientView[]; askers: readonly AskerView[] },
  now: number,
): Exempt[] {
  const isLive = ({ expires_at }: ClientView) => expires_at === undefined || expires_at > now;
  const paired = clients.filter((one) => one.asks_itself && isLive(one) && one.scopes.includes("call"));
  // Without a token nobody gets an answer then.
  const unpaired = api_mode === "open" ? askers : [];
  return [
    ...(api_mode === "open" && walk_in === "allow" ? [{ key: "walk-ins", words: m.rules_walk_ins() }] : []),
    ...paired.map(({ id, name }) => ({ key: `client ${id}`, words: m.rules_asks_itself({ name: nameWords(name) }) })),
    ...unpaired.map(({ path, script }) => ({
      key: JSON.stringify([path, script]),
      words: m.rules_asks_itself({ name: plain(script ?? path) }),
    })),
  ];
}
