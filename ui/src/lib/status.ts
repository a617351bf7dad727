/** A connector's state in words, shape and colour. */
import type { Action, ConnectorView, SignInStage, Status, TransportKind } from "./bridge";
import * as m from "./messages";
import { plain } from "./plain";
import { until } from "./time";

/** Colour and shape always go together, so that neither is needed alone. */
export type Look = {
  tone: "ok" | "calm" | "busy" | "warn" | "bad";
  shape: "dot" | "ring" | "dash" | "arc" | "diamond" | "square";
};

export function statusWords(status: Status): string {
  switch (status) {
    case "disabled":
      return m.status_disabled();
    case "sleeping":
      return m.status_sleeping();
    case "connecting":
      return m.status_connecting();
    case "connected":
      return m.status_connected();
    case "retrying":
      return m.status_retrying();
    case "needs_sign_in":
      return m.status_needs_sign_in();
    case "needs_secret":
      return m.status_needs_secret();
    case "needs_review":
      return m.status_needs_review();
    case "paused":
      return m.status_paused();
    case "keychain_unavailable":
      return m.status_keychain_unavailable();
    case "error":
      return m.status_error();
    case "invalid":
      return m.status_invalid();
  }
}

export function statusLook(status: Status): Look {
  switch (status) {
    case "connected":
      return { tone: "ok", shape: "dot" };
    case "sleeping":
      return { tone: "calm", shape: "ring" };
    case "disabled":
    case "paused":
      return { tone: "calm", shape: "dash" };
    case "connecting":
      return { tone: "busy", shape: "arc" };
    case "retrying":
    case "needs_sign_in":
    case "needs_secret":
    case "needs_review":
    case "keychain_unavailable":
      return { tone: "warn", shape: "diamond" };
    case "error":
    case "invalid":
      return { tone: "bad", shape: "square" };
  }
}

/** The state as it is now: while it is tried again with the attempt and the time until then. */
export function stateWords({ status, connection }: ConnectorView, now: number, isStopped: boolean): string {
  const { retry } = connection;
  if (isStopped) return m.status_stopped();
  if (retry === null) return statusWords(status);
  const { number, max } = retry;
  if (retry.next_attempt_at <= now) return m.retry_due({ number, max });
  return m.retry_line({ number, max, time: until(retry.next_attempt_at, now) });
}

/** What a screen reader is told about one connector. */
export type Told = { id: string; phase: "quiet" | "trying" | Status; text: string };

export const nothingTold: Told = { id: "", phase: "quiet", text: "" };

/** Each attempt is told once, without the time until it, and at the end of them their outcome once. */
export function toldAfter(before: Told, connector: ConnectorView, isStopped: boolean): Told {
  const { id, status, connection } = connector;
  const { phase } = before.id === id ? before : nothingTold;
  const name = plain(connector.name);
  if (connection.retry !== null) {
    const { number, max } = connection.retry;
    return { id, phase: "trying", text: m.retry_told({ name, number, max }) };
  }
  // The attempt itself: how it ends is not known yet.
  if (phase === "trying" && status === "connecting") return before;
  if (phase !== "trying" && phase !== status) return { id, phase: "quiet", text: "" };
  const state = isStopped ? m.status_stopped() : statusWords(status);
  return { id, phase: status, text: m.state_told({ name, state }) };
}

/** Whether connecting once more mends nothing: its page leads to what does. */
export function hasOwnPanel(status: Status): boolean {
  switch (status) {
    case "needs_sign_in":
    case "needs_secret":
    case "needs_review":
    case "paused":
    case "keychain_unavailable":
    case "invalid":
      return true;
    case "disabled":
    case "sleeping":
    case "connecting":
    case "connected":
    case "retrying":
    case "error":
      return false;
  }
}

export function transportWords(transport: TransportKind): string {
  switch (transport) {
    case "stdio":
      return m.transport_stdio();
    case "http":
      return m.transport_http();
    case "sse":
      return m.transport_sse();
  }
}

/** Why it does not work; nothing where the person turned it off, or where a pause says enough. */
export function troubleOf(connector: ConnectorView): string | undefined {
  if (connector.status === "paused") return undefined;
  return connector.enabled || connector.status === "invalid" ? connector.error : undefined;
}

/** What a row's one button does: a command, or a place where the mend is. */
export type Mend =
  | { kind: "reconnect"; label: string }
  | { kind: "sign_in"; label: string }
  | { kind: "review"; label: string }
  | { kind: "resume"; label: string }
  | { kind: "open"; label: string; tab: "overview" | "settings" };

/** The one button of a connector's row; none where its switch is the mend or nothing needs one. */
export function mendOf(connector: ConnectorView, signIn?: SignInStage): Mend | null {
  if (signIn?.stage === "failed") return { kind: "sign_in", label: m.action_try_again() };
  // A sign-in that is under way has its own page.
  if (signIn) return { kind: "open", label: m.action_go_on(), tab: "overview" };
  const action: Action | undefined = connector.action;
  switch (action) {
    case undefined:
    case "enable":
      return null;
    case "reconnect":
      return { kind: "reconnect", label: connector.status === "retrying" ? m.action_try_now() : m.action_try_again() };
    case "edit":
      return { kind: "open", label: m.action_edit(), tab: "settings" };
    case "sign_in":
      return { kind: "sign_in", label: m.action_sign_in() };
    case "set_secret":
      return { kind: "open", label: m.action_enter_key(), tab: "overview" };
    case "unlock_keychain":
      return { kind: "open", label: m.action_see_why(), tab: "overview" };
    case "review":
      return { kind: "review", label: m.action_review() };
    case "resume":
      return { kind: "resume", label: m.action_resume() };
  }
}
