/** All rules, as the bridge told them last; asked for by whoever shows them. */
import { sentence } from "./failure";
import { rpc } from "./rpc";
import type { RuleView } from "./rule";

class RuleList {
  /** Null until they were read once. */
  rules = $state.raw<RuleView[] | null>(null);
  /** Why they could not be read last. */
  failure = $state<string | null>(null);
  #running = false;
  #again = false;

  /** One at a time: what changes meanwhile is read once more at its end. */
  async refresh(): Promise<void> {
    this.#again = true;
    if (this.#running) return;
    this.#running = true;
    while (this.#again) {
      this.#again = false;
      try {
        this.rules = await rpc.rules();
        this.failure = null;
      } catch (cause) {
        this.failure = sentence(cause);
      }
    }
    this.#running = false;
  }
}

export const ruleList = new RuleList();
