/** Connections that heal, and the log, as the window shows them. */
import { flushSync } from "svelte";
import { expect, test, vi } from "vitest";

import { calls, logWaiters, publish, writeLog } from "./rpc-fixture";
import { button, focused, frame, go, open, query, settle, text } from "./window";
import { connector, ordinary, world } from "./worlds";

function retrying(number: number, inMs: number, sequence = 4 + number) {
  const at = Date.now();
  return connector("github", {
    name: "GitHub",
    status: "retrying",
    tools: 0,
    action: "reconnect",
    error: "It could not be reached: nothing listens at its address.",
    error_detail: "the last words",
    connection: {
      ...connector("github").connection,
      sequence,
      retry: { number, max: 5, scheduled_at: at, next_attempt_at: at + inMs, delay_ms: inMs },
    },
  });
}

function show(made: ReturnType<typeof connector>): void {
  publish((snapshot) => ({ ...snapshot, connectors: [made] }));
}

test.each(["", "#/connectors/github"])("an attempt counts down by itself at “%s” and is told once", async (place) => {
  await open(world([retrying(3, 8_000)]), place);
  const state = () => query(".state").textContent?.trim();
  const told = () => query("[role=status].hidden-label").textContent;
  expect(state()).toBe("Attempt 3 of 5, in 8\u00a0s");
  expect(told()).toBe("GitHub: attempt 3 of 5");
  await settle(1_000);
  expect(state()).toBe("Attempt 3 of 5, in 7\u00a0s");
  expect(query(".state span").getAttribute("aria-hidden")).toBe("true");
  expect(told()).toBe("GitHub: attempt 3 of 5");
  await settle(9_000);
  expect(state()).toBe("Attempt 3 of 5, now");
  show(retrying(4, 16_000));
  await settle();
  expect(state()).toBe("Attempt 4 of 5, in 16\u00a0s");
  expect(told()).toBe("GitHub: attempt 4 of 5");
});

test.each([
  ["connected", "GitHub: Connected"],
  ["error", "GitHub: Not working"],
] as const)("when the attempts end, “%s” is told once", async (status, outcome) => {
  await open(world([retrying(3, 8_000)]));
  const told = () => query("[role=status].hidden-label").textContent;
  const ended = { ...retrying(3, 8_000), status, connection: { ...connector("github").connection, sequence: 9 } };
  show({ ...ended, status: "connecting" });
  await settle();
  expect(told()).toBe("GitHub: attempt 3 of 5");
  show(ended);
  await settle();
  expect(told()).toBe(outcome);
  show({ ...ended, status: "sleeping" });
  await settle();
  expect(told()).toBe("");
});

test("one clock counts for all connectors, and none while the window is not seen", async () => {
  const many = Array.from({ length: 50 }, (_, n) => ({ ...retrying(3, 60_000), id: `c${n}`, name: `C${n}` }));
  await open(world(many));
  expect(vi.getTimerCount()).toBe(1);
  const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  document.dispatchEvent(new Event("visibilitychange"));
  expect(vi.getTimerCount()).toBe(0);
  await settle(5_000);
  hidden.mockReturnValue(false);
  document.dispatchEvent(new Event("visibilitychange"));
  flushSync();
  expect(query(".state").textContent).toContain("in 55\u00a0s");
  hidden.mockRestore();
});

test("the attempts can be cut short and given up, and then the state says so and offers one thing", async () => {
  await open(world([retrying(3, 8_000)]));
  button("Try now: GitHub").click();
  await settle();
  expect(calls).toEqual(["reconnect github"]);
  button("Stop trying: GitHub").focus();
  focused().click();
  await frame();
  expect(calls.at(-1)).toBe("stop_trying github");
  expect(query(".state").textContent?.trim()).toBe("Stopped trying");
  expect(query("[role=status].hidden-label").textContent).toBe("GitHub: Stopped trying");
  const actions = [...document.querySelectorAll("li button:not([role=switch])")];
  expect(actions.map((one) => one.textContent?.trim())).toEqual(["Try again"]);
  expect(focused().tagName).not.toBe("BODY");

  await go("#/connectors/github");
  expect(text()).toContain("Stopped trying");
  expect(text()).not.toContain("Stop trying");
  button("Try again");
  show(retrying(1, 1_000, 20));
  await settle();
  show({ ...retrying(1, 1_000, 21), status: "error", connection: { ...connector("x").connection, sequence: 21 } });
  await settle();
  expect(query(".state").textContent?.trim()).toBe("Not working");
});

test("a refused stop is told beside its button", async () => {
  await open(world([retrying(3, 8_000)], { refusal: { code: "unavailable", error: "It is being replaced." } }));
  button("Stop trying: GitHub").click();
  await settle();
  expect(query("[role=alert] p").textContent).toBe("It is being replaced.");
});

test.each(["", "#/connectors/github"])("a slow attempt can be stopped after half a second at “%s”", async (place) => {
  const slow = connector("github", { name: "GitHub", status: "connecting", progress: "Still installing… (12 s)" });
  await open(world([slow]), place);
  const stop = place === "" ? "Stop: GitHub" : "Stop";
  expect(() => button(stop)).toThrow();
  await settle(600);
  expect(text()).toContain("Still installing… (12 s)");
  expect(document.querySelectorAll("progress")).toHaveLength(place === "" ? 0 : 1);
  button(stop).click();
  await settle();
  expect(calls).toEqual(["stop_trying github"]);
});

test("the button that stops stays while the next attempt begins", async () => {
  await open(world([retrying(3, 8_000)]));
  const stop = button("Stop trying: GitHub");
  stop.focus();
  show({ ...retrying(3, 8_000), status: "connecting", connection: connector("x").connection });
  await settle();
  expect(focused()).toBe(stop);
  expect(stop.textContent?.trim()).toBe("Stop");
});

test("the last words of a program are folded under the sentence", async () => {
  await open(world([retrying(3, 8_000)]), "#/connectors/github");
  const folded = query<HTMLDetailsElement>("details");
  expect(folded.open).toBe(false);
  expect(folded.textContent).toContain("the last words");
  expect(query(".trouble").textContent).toContain("nothing listens at its address");
});

const lines = () => [...document.querySelectorAll(".log p")].map((line) => line.textContent);

/** Gives the log a height; the test's page has no layout. */
function layOut(height: number): HTMLElement {
  const box = query(".log");
  Object.defineProperty(box, "clientHeight", { value: 100, configurable: true });
  Object.defineProperty(box, "scrollHeight", { get: () => height * document.querySelectorAll(".log p").length });
  box.scrollTo = ((to: ScrollToOptions) => (box.scrollTop = to.top ?? 0)) as typeof box.scrollTo;
  return box;
}

test("the log goes on by itself and stays at its end until somebody scrolls up", async () => {
  const at = "2026-11-30T09:14:05.000Z";
  await open(world(ordinary, { log: [`${at} one`, `${at} [session] connected to x`] }), "#/connectors/files/log");
  expect(lines().map((line) => line?.replace(/^\d\d:\d\d:05/, ""))).toEqual(["one", "connected to x"]);
  expect(query(".session").textContent).toContain("connected to x");
  const box = layOut(50);
  writeLog([`${at} two`]);
  await settle();
  expect([lines().length, box.scrollTop]).toEqual([3, 150]);

  box.scrollTop = 0;
  box.dispatchEvent(new Event("scroll"));
  writeLog([`${at} three`]);
  await settle();
  expect([lines().length, box.scrollTop]).toEqual([4, 0]);
  button("Jump to newest").click();
  await settle();
  expect(box.scrollTop).toBe(200);
  expect(() => button("Jump to newest")).toThrow();

  writeLog([`${at} <b>nine</b>`], true);
  await settle();
  expect(text()).toContain("Some lines are missing here.");
  expect(document.querySelector(".log b")).toBeNull();
});

test("a log of long lines keeps the newest half million characters, and all of them are copied", async () => {
  const long = (n: number) => `${n} ${"x".repeat(4_000)}`;
  await open(world(ordinary, { log: Array.from({ length: 300 }, (_, n) => long(n)) }), "#/connectors/files/log");
  const shown = lines();
  expect(shown.length).toBe(Math.floor((512 * 1024) / long(299).length));
  expect(shown.at(-1)).toBe(long(299));
  const write = vi.fn<(text: string) => Promise<void>>().mockResolvedValue();
  vi.spyOn(navigator.clipboard, "writeText").mockImplementation(write);
  button("Copy Log").click();
  await settle();
  expect(write.mock.calls).toEqual([[shown.join("\n")]]);
});

test("a log without lines says so and shows the first one that comes", async () => {
  await open(world(ordinary), "#/connectors/files/log");
  expect(text()).toContain("It has written nothing so far.");
  writeLog(["without a time"]);
  await settle();
  expect(lines()).toEqual(["without a time"]);
});

test("leaving the log ends the wait for its lines", async () => {
  await open(world(ordinary), "#/connectors/files/log");
  expect(logWaiters()).toBe(1);
  await go("#/connectors/files/overview");
  expect(logWaiters()).toBe(0);
  expect(calls.at(-1)).toBe("cancel_log");
  const asked = calls.length;
  await settle(60_000);
  expect(calls).toHaveLength(asked);
});

test("a log that cannot be read says why and is asked for again", async () => {
  await open(world(ordinary), "#/connectors/nobody/log");
  await go("#/connectors/files/log");
  publish((snapshot) => ({ ...snapshot, connectors: [connector("files")] }));
  const asked = calls.length;
  writeLog(["now"]);
  await settle(2_000);
  expect(lines()).toEqual(["now"]);
  expect(calls.length).toBeGreaterThan(asked);
});
