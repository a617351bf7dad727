/** Stands in for `src/lib/rpc.ts` in tests and in the preview: the same type, over plain data in memory. */
import type {
  ApiError,
  CallAnswer,
  ConnectorDetail,
  ConnectorView,
  Paste,
  Snapshot,
  ToolView,
} from "../src/lib/bridge";
import type { Opening, Rpc, Theme } from "../src/lib/rpc";

export type World = {
  snapshot: Snapshot;
  tools: Record<string, ToolView[]>;
  entries: Record<string, string>;
  rejected: ConnectorDetail["rejected"];
  log: string[];
  opening: Opening;
  theme: Theme;
  propose: (text: string) => Paste;
  answer: (name: string, input: string) => CallAnswer | ApiError | "never";
  /** Refuses every change where set. */
  refusal: ApiError | null;
};

export let world: World;
/** Every call, as `command arguments…`. */
export const calls: string[] = [];

let onSnapshot: (snapshot: Snapshot) => void = () => {};
const waiting = new Map<string, () => void>();

export function setWorld(next: World): void {
  world = next;
  calls.length = 0;
}

/** Changes the world and publishes a new snapshot. */
export function publish(change: (snapshot: Snapshot) => Snapshot): void {
  world.snapshot = change(world.snapshot);
  onSnapshot(world.snapshot);
}

function change(id: string, to: (connector: ConnectorView) => ConnectorView): void {
  publish((snapshot) => ({
    ...snapshot,
    connectors: snapshot.connectors.map((connector) => (connector.id === id ? to(connector) : connector)),
  }));
}

function record(...parts: unknown[]): void {
  calls.push(parts.join(" "));
}

async function refuse(): Promise<void> {
  if (world.refusal) throw world.refusal;
}

function find(id: string): ConnectorView {
  const connector = world.snapshot.connectors.find((one) => one.id === id);
  if (!connector) throw { code: "unknown_server", error: `There is no connector "${id}".` } satisfies ApiError;
  return connector;
}

export const rpc: Rpc = {
  async watch(listener) {
    onSnapshot = listener;
    listener(world.snapshot);
  },
  async routes() {},
  opening: async () => world.opening,
  async connector(id) {
    const connector = find(id);
    return { connector, tools: world.tools[id] ?? [], rejected: world.rejected, entry: world.entries[id] ?? "{}" };
  },
  propose: async (text) => world.propose(text),
  async add(id, entry) {
    record("add", id, entry);
    await refuse();
    // The snapshot that holds it comes when the test publishes it.
    return { ...world.snapshot.connectors[0]!, id, name: id };
  },
  async replace(id, entry) {
    record("replace", id, entry);
    await refuse();
    return find(id);
  },
  async setEnabled(id, enabled) {
    record("set_enabled", id, enabled);
    await refuse();
    change(id, (connector) => ({ ...connector, enabled, status: enabled ? "sleeping" : "disabled" }));
  },
  async setToolEnabled(id, tool, enabled) {
    record("set_tool_enabled", id, tool, enabled);
    await refuse();
    world.tools[id] = (world.tools[id] ?? []).map((one) => (one.name === tool ? { ...one, enabled } : one));
  },
  async remove(id) {
    record("remove", id);
    await refuse();
    publish((snapshot) => ({ ...snapshot, connectors: snapshot.connectors.filter((one) => one.id !== id) }));
  },
  async reconnect(id) {
    record("reconnect", id);
    await refuse();
    return { verified: true };
  },
  async tryTool(ticket, name, input) {
    record("try_tool", name, input);
    const answer = world.answer(name, input);
    if (answer === "never") {
      await new Promise<void>((done) => waiting.set(ticket, done));
      throw { code: "unavailable", error: "The call was cancelled." } satisfies ApiError;
    }
    if (!("ok" in answer)) throw answer;
    return answer;
  },
  async cancelTry(ticket) {
    record("cancel_try");
    waiting.get(ticket)?.();
  },
  logTail: async () => world.log,
  settings: async () => ({ theme: world.theme }),
  async setTheme(theme) {
    record("set_theme", theme);
    await refuse();
  },
};
