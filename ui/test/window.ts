/** The window in a test: opened over a fixture, looked at and used; closed after each test of whoever imports this. */
import { flushSync, mount, tick, unmount } from "svelte";
import { afterEach, beforeEach, vi } from "vitest";

import App from "../src/App.svelte";
import { store } from "../src/lib/store.svelte";
import { setWorld, type World } from "./rpc-fixture";

let app: Record<string, unknown> | null = null;

beforeEach(() => {
  vi.useFakeTimers();
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
});

afterEach(async () => {
  if (app) await unmount(app);
  app = null;
  document.body.replaceChildren();
  vi.useRealTimers();
});

export async function open(made: World, hash = ""): Promise<void> {
  setWorld(made);
  store.snapshot = null;
  store.dismissed = {};
  store.onlyWaiting = false;
  await go(hash);
  app = mount(App, { target: document.body });
  await settle();
}

export async function go(hash: string): Promise<void> {
  location.hash = hash;
  window.dispatchEvent(new HashChangeEvent("hashchange"));
  await settle();
}

/** Lets every promise and effect run, and `ms` pass. */
export async function settle(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await tick();
  flushSync();
}

export function text(): string {
  return document.body.textContent ?? "";
}

export function query<T extends HTMLElement>(selector: string): T {
  const found = document.querySelector<T>(selector);
  if (!found) throw new Error(`nothing matches ${selector} in: ${text()}`);
  return found;
}

export function button(name: string): HTMLButtonElement {
  const found = [...document.querySelectorAll<HTMLButtonElement>("button")].find(
    (one) => (one.getAttribute("aria-label") ?? one.textContent ?? "").trim() === name,
  );
  if (!found) throw new Error(`no button "${name}" in: ${text()}`);
  return found;
}

export async function write(field: HTMLInputElement | HTMLTextAreaElement, value: string): Promise<void> {
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await settle();
}

export const focused = () => document.activeElement as HTMLElement;

/** Lets a change be seen and the next frame pass. */
export const frame = () => settle(50);
