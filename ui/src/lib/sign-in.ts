/** A sign-in, a keychain and a question in words. Pure. */
import type { KeptIn, KeychainState, SecretView, SignInOutcome, SignInStage, SignInView } from "./bridge";
import * as m from "./messages";

/** A browser that has not come back after this many milliseconds may have shown an error. */
export const lateMs = 20_000;

/** Whether the person is offered another way to come back. */
export function isLate({ stage, since }: SignInView, now: number): boolean {
  return stage.stage === "waiting" && now - since >= lateMs;
}

/** How a sign-in stands now: one whose time is over has failed, also where the bridge has not said so yet. */
export function stageAt({ stage }: SignInView, now: number): SignInStage {
  if (stage.stage !== "waiting" || now < stage.expires_at) return stage;
  return { stage: "failed", outcome: "expired", message: m.failed_expired_text() };
}

/** Whether a text may be the address on which a sign-in ends. */
export function isFinalAddress(text: string): boolean {
  return /[?&]state=[^&]/.test(text);
}

export function failedWords(outcome: SignInOutcome): string {
  switch (outcome) {
    case "denied":
      return m.failed_denied();
    case "expired":
      return m.failed_expired();
    case "invalid_state":
      return m.failed_invalid_state();
    case "cancelled":
      return m.failed_cancelled();
    case "signed_in":
    case "failed":
      return m.failed_failed();
  }
}

export function keptWords(keptIn: KeptIn): string {
  switch (keptIn) {
    case "keychain":
      return m.kept_in_keychain();
    case "file":
      return m.kept_in_file();
    case "memory":
      return m.kept_in_memory();
  }
}

export function secretWords({ set, withheld }: SecretView): string {
  if (withheld) return m.key_is_withheld();
  switch (set) {
    case true:
      return m.key_is_set();
    case false:
      return m.key_is_not_set();
    case null:
      return m.key_is_unknown();
  }
}

/** What is wrong with the keychain, and what to do; null where nothing is known to be wrong. */
export function keychainTrouble(state: KeychainState): { title: string; text: string } | null {
  switch (state) {
    case "unused":
    case "ready":
      return null;
    case "locked":
      return { title: m.keychain_locked(), text: m.keychain_locked_text() };
    case "absent":
      return { title: m.keychain_absent(), text: m.keychain_absent_text() };
    case "slow":
      return { title: m.keychain_slow(), text: m.keychain_slow_text() };
    case "refused":
      return { title: m.keychain_refused(), text: m.keychain_refused_text() };
  }
}

/** An address cut so that its host can be shown strong; the host is empty where it does not stand in the text. */
export function aroundHost(url: string, host: string): { before: string; host: string; after: string } {
  const from = url.indexOf("//") + 2;
  const rest = url.slice(from);
  const authority = rest.slice(0, rest.search(/[/?#\\]|$/));
  const at = from + authority.lastIndexOf("@") + 1;
  const shown = host !== "" && url.slice(at).toLowerCase().startsWith(host.toLowerCase());
  if (from < 2 || !shown) return { before: url, host: "", after: "" };
  return { before: url.slice(0, at), host: url.slice(at, at + host.length), after: url.slice(at + host.length) };
}
