/** Tool names for the search, read from the bridge only once somebody searches, and again when a list changed. */
import type { ConnectorView } from "./bridge";
import { rpc } from "./rpc";

class ToolIndex {
  private names = $state.raw<ReadonlyMap<string, { key: string; names: readonly string[] }>>(new Map());
  private running = false;

  of(id: string): readonly string[] | undefined {
    return this.names.get(id)?.names;
  }

  /** One connector after the other; one that cannot be read is searched by name only. */
  async refresh(connectors: readonly ConnectorView[]): Promise<void> {
    if (this.running) return;
    this.running = true;
    const next = new Map(this.names);
    let isChanged = false;
    for (const connector of connectors) {
      const key = `${connector.connection.generation}.${connector.tools}`;
      if (next.get(connector.id)?.key === key) continue;
      isChanged = true;
      try {
        const { tools } = await rpc.connector(connector.id);
        next.set(connector.id, { key, names: tools.map((tool) => tool.name) });
      } catch {
        next.delete(connector.id);
      }
    }
    if (isChanged) this.names = next;
    this.running = false;
  }
}

export const toolIndex = new ToolIndex();
