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

  /**
   * Made while its card is. It sleeps when the card appears, and again whenever `shown` says something else: what there is
   * to read, and how many cards stand above it, because what moves up may come under a click that was meant for the one
   * before. `approval` is the question with a time for its answer, where there is one.
   */
  constructor(shown: () => string | number, approval: () => ApprovalView | null = () => null) {
    this.#approval = approval;
    const reads = $derived(shown());
    $effect(() => {
      void reads;
      this.#awake = false;
      const timer = setTimeout(() => (this.#awake = true), wakeMs);
      return () => clearTimeout(timer);
    });
  }

  get isOver(): boolean {
    const approval = this.#approval();
    return approval !== null && store.now >= approval.expires_at;
  }

  get asleep(): boolean {
    return !this.#awake || this.#busy || this.isOver;
  }

  async once(what: () => Promise<void>): Promise<void> {
    if (this.asleep) return;
    this.#busy = true;
    this.failure = await failureOf(what);
    this.#busy = false;
  }
}
