/**
 * What is told beside the cards of questions: what an answer came to and how it is taken back, that a question ended by
 * itself, and that another one came.
 */
import type { ApprovalView, Snapshot } from "./bridge";
import * as m from "./messages";
import { store } from "./store.svelte";
import { callerOf, titleOf } from "./waiting";
import { nameWords, whoWords } from "./who";

/** How long it stays in milliseconds, unless the pointer or the keyboard is on it. */
export const toldMs = 12_000;
/** For so long other questions may end by an answer that reaches further than one, in milliseconds. */
const reachMs = 3_000;

export type Said = {
  text: string;
  /** Null where nothing can be taken back. */
  undo: (() => Promise<void>) | null;
};

class Telling {
  /** What happened last, for everybody to see. */
  said = $state.raw<Said | null>(null);
  /** What came last, for those who hear the window. */
  arrived = $state("");
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isHeld = false;
  #waiting: ApprovalView[] | null = null;
  #answered = new Set<string>();
  #reachesUntil = 0;

  say(text: string, undo: Said["undo"] = null): void {
    this.said = { text, undo };
    this.#restart();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#isHeld = false;
    this.said = null;
  }

  /** Somebody is on it: it stays until they have left. */
  hold(): void {
    this.#isHeld = true;
    clearTimeout(this.#timer);
  }

  release(): void {
    this.#isHeld = false;
    this.#restart();
  }

  /** Answers these questions, so that their end is not taken for their callers' doing. */
  async answering(ids: readonly string[], reachesFurther: boolean, answer: () => Promise<void>): Promise<void> {
    for (const id of ids) this.#answered.add(id);
    if (reachesFurther) this.#reachesUntil = Date.now() + reachMs;
    try {
      await answer();
    } catch (cause) {
      for (const id of ids) this.#answered.delete(id);
      throw cause;
    }
    if (reachesFurther) this.#reachesUntil = Date.now() + reachMs;
  }

  /** Tells what came and what went since the snapshot before. */
  take({ approvals, missed }: Snapshot): void {
    const before = this.#waiting;
    const waiting = approvals.filter(({ state }) => state === "waiting");
    this.#waiting = waiting;
    if (before === null) return;
    const is = (one: ApprovalView) => (other: ApprovalView) => other.id === one.id;
    const ended = before.filter((one) => !waiting.some(is(one)) && !this.#answered.delete(one.id));
    const left = ended.filter((one) => !missed.some(is(one))).at(-1);
    if (left && Date.now() > this.#reachesUntil) this.say(goneWords(left));
    const news = waiting.filter((one) => !before.some(is(one))).at(-1);
    if (news) {
      const { title, object } = titleOf(news, store.connector(news.server));
      const words = object === null ? title : `${title}: ${nameWords(object)}`;
      this.arrived = m.told_arrived({ count: waiting.length, words });
    }
    if (waiting.length === 0) this.arrived = "";
  }

  /** Another window has other questions. */
  forget(): void {
    this.close();
    this.arrived = "";
    this.#waiting = null;
    this.#answered.clear();
    this.#reachesUntil = 0;
  }

  #restart(): void {
    clearTimeout(this.#timer);
    if (this.said !== null && !this.#isHeld) this.#timer = setTimeout(() => (this.said = null), toldMs);
  }
}

export const telling = new Telling();

function goneWords(approval: ApprovalView): string {
  const who = callerOf(approval);
  return m.told_gone({ who: who === null ? nameWords(approval.server_name) : whoWords(who) });
}
