/** The window's one state: the newest snapshot, why the window opened, and the time by which ages are told. */
import type { ConnectorView, Snapshot } from "./bridge";
import { sentence } from "./failure";
import { rpc, type Opening, type Theme } from "./rpc";
import { router } from "./router.svelte";

/** A snapshot follows its command within milliseconds; after this the screen goes on without, in milliseconds. */
const SNAPSHOT_DEADLINE = 2_000;

class Store {
  /** Null until the first one came. */
  snapshot = $state.raw<Snapshot | null>(null);
  /** Why there is no snapshot. */
  failure = $state<string | null>(null);
  opening = $state.raw<Opening>({ reason: "asked", route: null });
  theme = $state<Theme>("system");
  /** Unix milliseconds; moves every second while something counts down, else every 20 seconds. */
  now = $state(Date.now());
  /** Panels that were closed in this window. */
  dismissed = $state<Record<string, true>>({});
  /** The state in which the person stopped the attempts of a connector, by id. */
  #stopped = $state.raw<Record<string, number>>({});
  readonly #counting = $derived(
    this.snapshot?.connectors.some((connector) => connector.connection.retry !== null) ?? false,
  );
  #awaited: { id: string; resolve: () => void }[] = [];

  connector(id: string): ConnectorView | undefined {
    return this.snapshot?.connectors.find((connector) => connector.id === id);
  }

  async stopTrying(id: string): Promise<void> {
    const { connection } = await rpc.stopTrying(id);
    this.#stopped = { ...this.#stopped, [id]: connection.sequence };
  }

  /** Whether it does not work because the person stopped the attempts, and nothing happened since. */
  isStopped({ id, status, connection }: ConnectorView): boolean {
    return status === "error" && this.#stopped[id] === connection.sequence;
  }

  /** Resolves once the snapshot has this connector: a command's answer may overtake the snapshot that it made. */
  async shows(id: string): Promise<void> {
    if (this.connector(id)) return;
    await new Promise<void>((resolve) => {
      this.#awaited.push({ id, resolve });
      setTimeout(resolve, SNAPSHOT_DEADLINE);
    });
  }

  #take(snapshot: Snapshot): void {
    this.snapshot = snapshot;
    // A wait that has just begun is told from now, not from the last second that passed.
    this.now = Date.now();
    this.#awaited = this.#awaited.filter(({ id, resolve }) => {
      if (!this.connector(id)) return true;
      resolve();
      return false;
    });
  }

  /** Subscribes first, so that nothing read afterwards can miss a change. */
  async start(): Promise<void> {
    this.failure = null;
    try {
      await rpc.watch((snapshot) => this.#take(snapshot));
      await rpc.routes((route) => router.go(route));
      this.opening = await rpc.opening();
      if (this.opening.route) router.go(this.opening.route);
      this.theme = (await rpc.settings()).theme;
    } catch (cause) {
      this.failure = sentence(cause);
    }
  }

  async chooseTheme(theme: Theme): Promise<void> {
    const before = this.theme;
    this.theme = theme;
    try {
      await rpc.setTheme(theme);
    } catch (cause) {
      this.theme = before;
      throw cause;
    }
  }

  /** Keeps `now` moving while the window is seen; returns the stop. Call inside an effect. */
  runClock(): () => void {
    const every = this.#counting ? 1_000 : 20_000;
    let timer: ReturnType<typeof setInterval> | undefined;
    const tick = () => (this.now = Date.now());
    const look = () => {
      clearInterval(timer);
      if (document.hidden) return;
      tick();
      timer = setInterval(tick, every);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }
}

export const store = new Store();
