/** The window's one state: the newest snapshot, why the window opened, and the time by which ages are told. */
import type { ConnectorView, SignInView, Snapshot } from "./bridge";
import { failureOf, sentence } from "./failure";
import { rpc, type Opening, type SignInAsk, type Theme } from "./rpc";
import { router } from "./router.svelte";

/** A snapshot follows its command within milliseconds; after this the screen goes on without, in milliseconds. */
const SNAPSHOT_DEADLINE = 2_000;

const nothingAsked: SignInAsk = { acceptIssuer: null, redirect: null };

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
  /** Whether the list shows only what needs the person. */
  onlyWaiting = $state(false);
  /** The state in which the person stopped the attempts of a connector, by id. */
  #stopped = $state.raw<Record<string, number>>({});
  /** Why the last wish about a connector's sign-in was not followed. */
  signInFailures = $state.raw<Record<string, string>>({});
  /** Connectors whose sign-in came to a good end while this window looked, until that is read. */
  signedIn = $state.raw<string[]>([]);
  /** Connectors that were added or allowed here, whose tools nobody has decided about yet. */
  choosing = $state.raw<string[]>([]);
  /** Of the connectors of which that was answered since: how many tools assistants may use without asking. */
  chosen = $state.raw<Record<string, number>>({});
  /** Questions that waited when everything was paused, until that ends. */
  #waitedAtPause = $state.raw<string[]>([]);
  /** How many of them a pause of everything has ended, unanswered. */
  readonly endedByPause = $derived(
    this.#waitedAtPause.filter((id) => !this.snapshot?.approvals.some((one) => one.id === id)).length,
  );
  /** Questions whose page was opened from here. */
  openedPages = $state<Record<string, true>>({});
  /** Their browser's answer came, and whether it was good is not known yet. */
  #ending = new Set<string>();
  readonly #counting = $derived(
    this.snapshot !== null &&
      (this.snapshot.connectors.some((connector) => connector.connection.retry !== null) ||
        this.snapshot.sign_ins.some(({ stage }) => stage.stage === "waiting") ||
        this.snapshot.trust.pairing !== null ||
        this.snapshot.approvals.length > 0),
  );
  #awaited: { id: string; resolve: () => void }[] = [];

  connector(id: string): ConnectorView | undefined {
    return this.snapshot?.connectors.find((connector) => connector.id === id);
  }

  signInOf(id: string): SignInView | undefined {
    return this.snapshot?.sign_ins.find((view) => view.server === id);
  }

  /** Begins a sign-in. How far it is shows in the snapshot, why it did not begin in `signInFailures`. */
  async signIn(id: string, ask: Partial<SignInAsk> = {}): Promise<void> {
    this.readSignedIn(id);
    await this.#aboutSignIn(id, () => rpc.signIn(id, { ...nothingAsked, ...ask }));
  }

  async cancelSignIn(id: string): Promise<void> {
    await this.#aboutSignIn(id, () => rpc.cancelSignIn(id));
    this.#ending.delete(id);
  }

  async openSignInAgain(id: string): Promise<void> {
    await this.#aboutSignIn(id, () => rpc.openSignInAgain(id));
  }

  readSignedIn(id: string): void {
    this.#ending.delete(id);
    this.signedIn = this.signedIn.filter((one) => one !== id);
  }

  async #aboutSignIn(id: string, wish: () => Promise<void>): Promise<void> {
    const { [id]: _before, ...others } = this.signInFailures;
    this.signInFailures = others;
    const failure = await failureOf(wish);
    if (failure !== null) this.signInFailures = { ...this.signInFailures, [id]: failure };
  }

  async stopTrying(id: string): Promise<void> {
    const { connection } = await rpc.stopTrying(id);
    this.#stopped = { ...this.#stopped, [id]: connection.sequence };
  }

  /** Whether it does not work because the person stopped the attempts, and nothing happened since. */
  isStopped({ id, status, connection }: ConnectorView): boolean {
    return status === "error" && this.#stopped[id] === connection.sequence;
  }

  /** It was just allowed to work: what assistants may do with it is asked next. */
  wantsChoice(id: string): void {
    const { [id]: _before, ...others } = this.chosen;
    this.chosen = others;
    this.choosing = [...new Set([...this.choosing, id])];
  }

  /** `unasked` is how many of its tools assistants may use without asking. */
  chose(id: string, unasked: number): void {
    this.chosen = { ...this.chosen, [id]: unasked };
    this.choosing = this.choosing.filter((one) => one !== id);
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
    this.#noteSignIns(this.snapshot?.sign_ins ?? [], snapshot);
    this.#notePause(this.snapshot, snapshot);
    this.snapshot = snapshot;
    // A wait that has just begun is told from now, not from the last second that passed.
    this.now = Date.now();
    this.#awaited = this.#awaited.filter(({ id, resolve }) => {
      if (!this.connector(id)) return true;
      resolve();
      return false;
    });
  }

  #notePause(before: Snapshot | null, now: Snapshot): void {
    if (!now.trust.paused) this.#waitedAtPause = [];
    else if (before !== null && !before.trust.paused) this.#waitedAtPause = before.approvals.map(({ id }) => id);
  }

  /** A sign-in that ended well leaves no view behind; its connector says so, perhaps a moment later. */
  #noteSignIns(before: SignInView[], { sign_ins, connectors }: Snapshot): void {
    for (const { server, stage } of before) {
      if (stage.stage === "waiting" || stage.stage === "finishing") this.#ending.add(server);
    }
    for (const { server } of sign_ins) this.#ending.delete(server);
    const good = connectors.filter(({ id, auth }) => this.#ending.has(id) && auth.state === "signed-in");
    if (good.length === 0) return;
    for (const { id } of good) this.#ending.delete(id);
    this.signedIn = [...new Set([...this.signedIn, ...good.map(({ id }) => id)])];
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
