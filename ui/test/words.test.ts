import { expect, test } from "vitest";

import { readBlock } from "../src/lib/blocks";
import { sentence } from "../src/lib/failure";
import { newest, readLine } from "../src/lib/log-line";
import { plain } from "../src/lib/plain";
import { connectorHref, parseRoute } from "../src/lib/router.svelte";
import { search } from "../src/lib/search";
import { mendOf, statusLook, statusWords } from "../src/lib/status";
import { ago, duration, secondsUntil, until } from "../src/lib/time";
import { connector, everyStatus, ordinary } from "./worlds";

test("every status has its own words", () => {
  const words = everyStatus.map(statusWords);
  expect(words.every((text) => text.length > 1)).toBe(true);
  expect(new Set(words).size).toBe(everyStatus.length);
  expect(statusWords("sleeping")).toBe("Ready, starts when used");
});

test("no two tones share a shape, so that colour is never needed", () => {
  const toneOf = new Map<string, string>();
  for (const status of everyStatus) {
    const { shape, tone } = statusLook(status);
    expect(toneOf.get(shape) ?? tone).toBe(tone);
    toneOf.set(shape, tone);
  }
});

test("a row has the one button that helps, and none where the switch does", () => {
  expect(mendOf(connector("a", { status: "retrying", action: "reconnect" }))).toMatchObject({ label: "Try now" });
  expect(mendOf(connector("a", { status: "invalid", action: "edit" }))).toMatchObject({ tab: "settings" });
  expect(mendOf(connector("a", { status: "disabled", action: "enable" }))).toBeNull();
  expect(mendOf(connector("a"))).toBeNull();
});

const minute = 60_000;
test.each([
  [0, "just now"],
  [-minute, "just now"],
  [59_999, "just now"],
  [minute, "1 minute ago"],
  [59 * minute, "59 minutes ago"],
  [23 * 60 * minute, "23 hours ago"],
  [24 * 60 * minute, "yesterday"],
  [40 * 24 * 60 * minute, "last month"],
  [800 * 24 * 60 * minute, "2 years ago"],
])("an age of %i ms is %j", (age, words) => {
  expect(ago(1_000_000_000_000 - age, 1_000_000_000_000)).toBe(words);
});

test("waits count down in whole seconds and stop at zero", () => {
  expect([secondsUntil(8_001, 0), secondsUntil(8_000, 0), secondsUntil(0, 5_000)]).toEqual([9, 8, 0]);
  expect([duration(3.4), duration(1_250)]).toEqual(["3\u00a0ms", "1.3\u00a0s"]);
});

test("waits that are long are told in minutes", () => {
  expect([until(8_001, 0), until(99_000, 0), until(100_001, 0), until(3_600_000, 0), until(0, 9)]).toEqual([
    "9\u00a0s",
    "99\u00a0s",
    "2\u00a0min",
    "60\u00a0min",
    "0\u00a0s",
  ]);
});

test("a line of a log is taken apart, and one without a time is whole", () => {
  const line = readLine(1, "2026-11-30T09:14:05.123Z [session] ended");
  expect(line).toMatchObject({ text: "ended", kind: "session" });
  expect(line.time).toMatch(/^\d\d:14:05$/);
  expect(readLine(2, "2026-11-30T09:14:05.123Z said [session] x")).toMatchObject({ kind: "written", key: 2 });
  expect(readLine(3, "plain")).toMatchObject({ time: "", text: "plain", whole: "plain", kind: "written" });
});

test("what an upstream writes never looks like a line of this app", () => {
  expect(readLine(1, "2026-11-30T09:14:05.123Z \\[session] paste your key")).toMatchObject({
    kind: "written",
    text: "\\[session] paste your key",
  });
});

test("the newest lines are kept by their number and by their characters", () => {
  const lines = ["aaaa", "bb", "cc"].map((whole, key) => readLine(key, whole));
  const kept = (most: number, characters: number) => newest(lines, most, characters).map(({ whole }) => whole);
  expect([kept(9, 9), kept(2, 9), kept(9, 7), kept(9, 1)]).toEqual([
    ["aaaa", "bb", "cc"],
    ["bb", "cc"],
    ["bb", "cc"],
    [],
  ]);
});

test("hidden characters are shown and emoji are left alone", () => {
  expect(plain("a\u202eb\u200bc\u{e0041}\u001b[0m")).toBe("a⟨U+202E⟩b⟨U+200B⟩c⟨U+E0041⟩␛[0m");
  expect(plain("👩‍💻 line\n\ttab شکر‌گزار")).toBe("👩‍💻 line\n\ttab شکر‌گزار");
});

test("addresses and places are the same thing, whatever an id or a tool is called", () => {
  for (const [id, tool] of [
    ["files", "write_file"],
    ["a/b c", "x/y?#%"],
    ["日本", "é"],
  ] as const) {
    expect(parseRoute(connectorHref(id, "tools", tool))).toEqual({ screen: "detail", id, tab: "tools", tool });
  }
  expect(parseRoute("#/add/hand")).toEqual({ screen: "add", by: "hand" });
  for (const odd of ["", "#", "#/nowhere", "#/connectors/", "#javascript:alert(1)"]) {
    expect(parseRoute(odd)).toEqual({ screen: "connectors" });
  }
  expect(parseRoute("#/connectors/%E0%A4%A/bad")).toMatchObject({ screen: "detail", tab: "overview" });
});

test("search looks at names, ids, addresses and tools, in any case and without accents", () => {
  const tools = (id: string) => (id === "files" ? ["write_file"] : undefined);
  const ids = (query: string) => search(ordinary, query, tools).map((hit) => hit.connector.id);
  expect(ids("")).toHaveLength(ordinary.length);
  expect(ids("POSTGRES stag")).toEqual(["postgres"]);
  expect(ids("git.hub")).toEqual(["git.hub"]);
  expect(ids("sentry.dev")).toEqual(["sentry"]);
  expect(search(ordinary, "write_f", tools)).toMatchObject([{ connector: { id: "files" }, tool: "write_file" }]);
  expect(search([connector("c", { name: "Café" })], "cafe", tools)).toHaveLength(1);
  expect(ids("nothing like it")).toEqual([]);
});

test("only pictures that run nothing are drawn", () => {
  expect(readBlock({ type: "image", mimeType: "image/png", data: "AAAA" })).toMatchObject({ kind: "image", bytes: 3 });
  for (const bad of [
    { type: "image", mimeType: "image/svg+xml", data: "AAAA" },
    { type: "image", mimeType: "text/html", data: "AAAA" },
    { type: "image", mimeType: "image/png", data: '"><script>' },
    { type: "image" },
    { type: "audio", mimeType: "image/png", data: "AAAA" },
    { type: "new kind" },
    null,
    "text",
    [],
  ]) {
    expect(readBlock(bad).kind).toBe("other");
  }
});

test("a block the bridge could not read says why", () => {
  expect(readBlock({ type: "unknown", text: "It has no mimeType." })).toEqual({
    kind: "other",
    note: "It has no mimeType.",
    json: "",
  });
});

test("a failure is never silent", () => {
  expect(sentence({ code: "not_saved", error: "The disk is full." })).toBe("The disk is full.");
  for (const odd of [undefined, null, "", {}, { error: "" }, new Error("")]) expect(sentence(odd)).not.toBe("");
});
