import { expect, test } from "vitest";

import { argumentWords, bars, outcomeWords, title, whoWords, withEarlier, withNews } from "../src/lib/activity";
import type { ActivityEntry } from "../src/lib/bridge";
import { calls, happen, world as present } from "./rpc-fixture";
import { button, go, open, query, settle, text, write } from "./window";
import { entry, ordinary, world } from "./worlds";

const ids = (list: ActivityEntry[]) => list.map(({ id }) => id);

function withActivity(count: number) {
  const made = world(ordinary);
  made.activity = Array.from({ length: count }, (_, index) => entry(count - index));
  made.days = [
    { day: "2026-11-29", calls: 8, failures: 2 },
    { day: "2026-11-30", calls: 0, failures: 0 },
  ];
  return made;
}

async function choose(label: string, value: string) {
  const field = query<HTMLSelectElement>(`select[aria-label="${label}"]`);
  field.value = value;
  field.dispatchEvent(new Event("change", { bubbles: true }));
  await settle();
}

test("the list grows at both ends and holds nothing twice", () => {
  const list = [entry(5), entry(4)];
  expect(ids(withNews(list, [entry(4), entry(5), entry(6), entry(7)]))).toEqual([7, 6, 5, 4]);
  expect(withNews(list, [entry(5)])).toBe(list);
  expect(ids(withEarlier(list, [entry(4), entry(3)]))).toEqual([5, 4, 3]);
});

test("what was sent along reads as names and sizes", () => {
  const shape = { path: "text(1)", lines: "list(3)", n: "number", force: true, none: null, deep: { a: "object(2)" } };
  expect(argumentWords({ kept: "shape", value: { ...shape, "…": "4 more" } })).toBe(
    "path (1 character), lines (3 items), n (number), force: true, none: null, deep (a (2 parts)), … 4 more",
  );
  expect(argumentWords({ kept: "full", value: { path: "/a" } })).toBe('path: "/a"');
  expect(argumentWords({ kept: "shape", value: {} })).toBe("");
});

test("who did it is named as closely as it is known", () => {
  expect(whoWords({ kind: "owner" })).toBe("You");
  expect(whoWords({ kind: "walk_in", program_name: "calling.py (python3.12)", pid: 911 })).toBe(
    "calling.py (python3.12)",
  );
  expect(whoWords({ kind: "client", client_name: "Claude", program_name: "node", pid: 1 })).toBe("Claude");
});

test("how it ended says why, and who did not allow it", () => {
  expect(outcomeWords(entry(1))).toBe("Went well");
  expect(outcomeWords(entry(1, { allowed_by: { by: "person", answer: "once" } }))).toBe("allowed once by you");
  expect(outcomeWords(entry(1, { what: { kind: "lost", entries: 2 } }))).toBeNull();
  expect(outcomeWords(entry(1, { outcome: "failed", code: "tool_error" }))).toBe("Failed: the tool reported an error");
  expect(outcomeWords(entry(1, { outcome: "failed", code: "not_saved" }))).toBe("Failed: not saved");
  expect(outcomeWords(entry(1, { outcome: "denied", code: "tool_changed" }))).toBe("Not allowed: the tool changed");
  const denied = entry(1, { outcome: "denied", code: "denied", allowed_by: { by: "person", answer: "denied" } });
  expect(outcomeWords(denied)).toBe("Not allowed: denied by you");
  const blocked = entry(1, { outcome: "denied", code: "denied", allowed_by: { by: "rule", rule: "r", name: "x" } });
  expect(outcomeWords(blocked)).toBe("Blocked by your rule");
  const made = entry(1, {
    who: { kind: "owner" },
    what: { kind: "review", server: "a", of: "rule", subject: "calling.py may never use write_note of A." },
    allowed_by: { by: "owner" },
  });
  expect(title(made)).toBe("You made a rule: calling.py may never use write_note of A.");
  expect(outcomeWords(made)).toBeNull();
  expect(title(entry(1, { what: { kind: "question", server: "a", asks: "change" } }))).toBe(
    "Asked you whether it may be changed",
  );
  expect(title(entry(1, { what: { kind: "change", server: "a", change: "secret_set", subject: null } }))).toBe(
    "Key entered",
  );
});

test("a bar is as high as its day, and what happened at all is seen", () => {
  const days = [
    { day: "a", calls: 1_000, failures: 1 },
    { day: "b", calls: 0, failures: 0 },
  ];
  const [first, second] = bars(days, 72);
  expect(first!.failed).toBe(2);
  expect(first!.well + first!.failed).toBeLessThanOrEqual(72);
  expect(second).toEqual({ day: "b", well: 0, failed: 0 });
});

test("the newest are shown, earlier ones on request, and what happens meanwhile on top", async () => {
  await open(withActivity(150), "#/activity");
  expect(document.querySelectorAll("main ul > li")).toHaveLength(100);
  button("Show earlier").click();
  await settle();
  expect(document.querySelectorAll("main ul > li")).toHaveLength(150);
  expect(text()).not.toContain("Show earlier");
  happen(entry(151, { what: { kind: "sign_in", server: "notion" } }));
  await settle();
  expect(query("main ul > li").textContent).toContain("Notion · Sign-in");
  expect(document.querySelectorAll("main ul > li")).toHaveLength(151);
  expect(query("figcaption").textContent).toContain("8, of which 2 were not allowed, were stopped or failed");
});

test("the chart calls nothing a fault that the person may have denied", async () => {
  await open(withActivity(3), "#/activity");
  const heads = [...document.querySelectorAll("figure thead th")].map(({ textContent }) => textContent);
  expect(heads).toEqual(["Day", "Uses", "Not allowed, stopped or failed"]);
});

test("more than one page of news leaves no gap", async () => {
  await open(withActivity(3), "#/activity");
  happen(...Array.from({ length: 250 }, (_, index) => entry(4 + index)));
  await settle();
  expect(document.querySelectorAll("main ul > li")).toHaveLength(253);
});

test("filters ask the bridge anew, and one that fits nothing can be taken back", async () => {
  const made = withActivity(3);
  made.activity[0]!.outcome = "failed";
  await open(made, "#/activity");
  await choose("How it ended", "failed");
  expect(document.querySelectorAll("main ul > li")).toHaveLength(1);
  await choose("Connector", "notion");
  expect(text()).toContain("Nothing that happened fits this choice.");
  button("Show everything").click();
  await settle();
  expect(document.querySelectorAll("main ul > li")).toHaveLength(3);
  await write(query<HTMLInputElement>("input[type=search]"), "nowhere");
  await settle(300);
  expect(calls.at(-1)).toContain('{"text":"nowhere"}');
});

test("an export is of what is chosen and says where it is", async () => {
  await open(withActivity(2), "#/activity");
  await choose("Connector", "files");
  button("Save as table (CSV)").click();
  await settle();
  expect(calls.at(-1)).toBe('export_activity {"server":"files"} csv');
  expect(text()).toContain("Saved 2 entries in /home/p/Downloads/activity.csv");
  present.refusal = { code: "not_saved", error: "The disk is full." };
  button("Save as JSON lines").click();
  await settle();
  expect(text()).toContain("The disk is full.");
});

test("a connector's own activity is on its page", async () => {
  await open(withActivity(2), "#/connectors/files/activity");
  expect(calls).toContain('activity {"server":"files"} - -');
  expect(document.querySelector('select[aria-label="Connector"]')).toBeNull();
  await go("#/connectors/notion/activity");
  expect(text()).toContain("Nothing has happened yet.");
});

test("names that others gave are text", async () => {
  const made = world(ordinary);
  const tool = '<img src=x onerror="document.title=1">\u202e';
  made.activity = [
    entry(1, {
      who: { kind: "walk_in", program_name: tool, program_path: tool, pid: 1 },
      what: { kind: "call", server: "files", tool, arguments: { kept: "full", value: { [tool]: tool } } },
    }),
  ];
  await open(made, "#/activity");
  expect(document.querySelector("main img")).toBeNull();
  expect(text()).not.toContain("\u202e");
});
