/** How a card takes its answers: none before it could be read, none twice, none too late. */
import type { ApprovalView } from "./bridge";
import { failureOf } from "./failure";
import { wakeMs } from "./question";
import { store } from "./store.svelte";

export class Answering {
  #awake = $state(false);
  #busy = $state(false);
  failure = $state<string | null>(null);
  readonly #approval: () => ApprovalView | null;

  /** `approval` is the question with a time for its answer, where there is one. */
  constructor(approval: () => ApprovalView | null = () => null) {
    this.#approval = approval;
  }

  get isOver(): boolean {
    const approval = this.#approval();
    return approval !== null && store.now >= approval.expires_at;
  }

  get asleep(): boolean {
    return !this.#awake || this.#busy || this.isOver;
  }

  /** From now on it has to be read anew. For an effect that sees what is shown and where; returns the stop. */
  sleep(): () => void {
    this.#awake = false;
    const timer = setTimeout(() => (this.#awake = true), wakeMs);
    return () => clearTimeout(timer);
  }

  async once(what: () => Promise<void>): Promise<void> {
    if (this.asleep) return;
    this.#busy = true;
    this.failure = await failureOf(what);
    this.#busy = false;
  }
}
