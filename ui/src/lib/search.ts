/** Which connectors a search shows, and because of which tool. */
import type { ConnectorView } from "./bridge";

export type Hit = {
  connector: ConnectorView;
  /** The first tool that matched, where neither name nor id did. */
  tool: string | null;
};

/**
 * Every word of the query must occur in the connector's name, id, description or summary, or all of them in one of its
 * tools' names. `toolsOf` may know nothing yet. An empty query shows all.
 */
export function search(
  connectors: readonly ConnectorView[],
  query: string,
  toolsOf: (id: string) => readonly string[] | undefined,
): Hit[] {
  const words = fold(query).split(/\s+/).filter(Boolean);
  const matches = (text: string) => words.every((word) => text.includes(word));
  const hits: Hit[] = [];
  for (const connector of connectors) {
    if (matches(fold(`${connector.name} ${connector.id} ${connector.description} ${connector.summary}`))) {
      hits.push({ connector, tool: null });
      continue;
    }
    const tool = toolsOf(connector.id)?.find((name) => matches(fold(`${name} ${connector.name} ${connector.id}`)));
    if (tool !== undefined) hits.push({ connector, tool });
  }
  return hits;
}

/** Lower case without accents, so that "cafe" finds "Café". */
function fold(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}
