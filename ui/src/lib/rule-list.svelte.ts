/** All rules, as the bridge told them last; asked for by whoever shows them. */
import { sentence } from "./failure";
import { rpc } from "./rpc";
import type { RuleView } from "./rule";

class RuleList {
  /** Null until they were read once. */
  rules = $state.raw<RuleView[] | null>(null);
  /** Why they could not be read last. */
  failure = $state<string | null>(null);
  #again = false;
  #reading: Promise<void> | null = null;

  /** One at a time: what changes meanwhile is read once more at its end. Resolves once what is true now was read. */
  refresh(): Promise<void> {
    this.#again = true;
    this.#reading ??= this.#read();
    return this.#reading;
  }

  async #read(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      try {
        this.rules = await rpc.rules();
        this.failure = null;
      } catch (cause) {
        this.failure = sentence(cause);
      }
    }
    this.#reading = null;
  }
}

export const ruleList = new RuleList();
