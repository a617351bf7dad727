import { expect, test } from "vitest";

import type { RuleDraft } from "../src/lib/bridge";
import { beginning, endsOf } from "../src/lib/call";
import { wakeMs } from "../src/lib/question";
import { rpc } from "../src/lib/rpc";
import { draftText, ruleSentence, wishesOf } from "../src/lib/rule";
import { ruleList } from "../src/lib/rule-list.svelte";
import { toldMs } from "../src/lib/telling.svelte";
import { pieces } from "../src/lib/visible";
import { calls, publish, type World } from "./rpc-fixture";
import { button, focused, frame, open, query, settle, text } from "./window";
import {
  argument,
  call,
  claude,
  launch,
  manage,
  now,
  ordinary,
  ran,
  rule,
  ruleDraft,
  script,
  waiting,
  world,
} from "./worlds";

const hostile = '<img src=x onerror="document.title=1">\u202e';
const place = "#/approvals";

const card = () => query("section[data-guided=question]");
const words = () => card().textContent?.replace(/\s+/g, " ") ?? "";
const told = () => query("[role=status].told").textContent?.replace(/\s+/g, " ").trim() ?? "";
const select = (label: string) => {
  const field = [...document.querySelectorAll<HTMLLabelElement>("dialog .argument > label")].find(
    (one) => one.textContent?.trim() === label,
  );
  return query<HTMLSelectElement>(`#${field?.htmlFor.replace(/[^\w-]/g, "\\$&")}`);
};

async function choose(field: HTMLSelectElement, value: string): Promise<void> {
  field.value = value;
  field.dispatchEvent(new Event("change", { bubbles: true }));
  await settle();
}

/** The rule that was made last. */
const made = () => JSON.parse(calls.at(-1)?.replace(/^\S+ (q1 )?/, "") ?? "") as RuleDraft;

test("a call is asked in one sentence, with who, where and everything it gives", async () => {
  await open(waiting(call("q1")), place);
  expect(card().querySelector("h2")?.textContent).toBe("Claude Code wants to create or replace a file");
  expect(words()).toContain("notes/today.md, in Files on this computer");
  for (const part of [
    "claude (process 4242), connected as “Claude Code”",
    "/home/ada/.local/bin/claude",
    "write_file",
    "says it may delete or overwrite",
    "call the bank about the invoice",
    "Without an answer nothing happens (1:42 left).",
  ]) {
    expect(words()).toContain(part);
  }
});

test("another connector's tool is named by its title, and its host is said", async () => {
  const subject = {
    subject: "tool" as const,
    tool: "create_issue",
    exposed_name: "mcp__linear__create_issue",
    title: "Create issue",
    description: "",
    hints: { read_only: null, destructive: null, idempotent: null, open_world: null },
  };
  const over = { subject, place: "mcp.linear.app", is_local: false, who: script, arguments: [] };
  await open(waiting(call("q1", over, { server: "linear", server_name: "Linear" })), place);
  expect(words()).toContain("python3 wants to use “Create issue”");
  expect(words()).toContain("in Linear at mcp.linear.app");
  expect(words()).toContain("says nothing about what it changes");
  expect(words()).toContain("running /home/ada/bots/helper.py");
  expect(words()).toContain("It gives no arguments.");
});

test("a caller that cannot be found is said to be a program of this computer", async () => {
  const who = { kind: "walk_in" as const, name: "", client: null, program: null };
  await open(waiting(call("q1", { who })), place);
  expect(words()).toContain("A program of this computer wants to");
  expect(words()).toContain("had ended before it could be looked up");
});

test.each([
  ["Allow once", "answer_call q1 once false"],
  ["Allow until I quit", "answer_call q1 until_quit false"],
  ["Deny", "answer_call q1 deny false"],
  ["Deny and block", "answer_call q1 block false"],
  ["I need longer", "extend_approval q1"],
  ["Stop this program asking for an hour", "stop_asking q1"],
])("“%s” works, and only once the card could be read", async (name, command) => {
  await open(waiting(call("q1")), place);
  button(name).click();
  await settle(wakeMs - 10);
  button(name).click();
  await settle();
  expect(calls).toEqual([]);
  await settle(20);
  button(name).click();
  await settle();
  expect(calls).toEqual([command]);
});

test("no answer is the default one, and Enter answers nothing", async () => {
  await open(waiting(call("q1"), manage("q2", { change: "enable" })), place);
  await settle(wakeMs);
  expect(document.querySelectorAll("main .primary")).toHaveLength(0);
  for (const one of document.querySelectorAll<HTMLButtonElement>("main button")) expect(one.type).toBe("button");
  card().dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  expect(focused().closest("[data-guided]")).toBeNull();
  await settle();
  expect(calls).toEqual([]);
});

test("a changed question has to be read anew", async () => {
  await open(waiting(call("q1")), place);
  await settle(wakeMs);
  publish((snapshot) => ({ ...snapshot, approvals: [call("q1", { arguments: [argument("path", "other.md")] })] }));
  await settle();
  button("Allow once").click();
  await settle();
  expect(calls).toEqual([]);
});

test("what is sent and not shown of an argument is said", async () => {
  await open(waiting(call("q1", { arguments: [argument("sql", "SELECT 1", { size: 1_200 })] })), place);
  expect(words()).toContain("1,192 more characters at its end are sent and not shown here.");
});

test("what is long is folded with its size, what is hidden is marked, and what the tool does not know is said", async () => {
  const long = `Dear all,\n${"x".repeat(2_129)}\u200b`;
  const middle = "x".repeat(200);
  const given = [
    argument("path", "a\u200b\u200b\u200bb.md"),
    argument("extra", "1", { known: false, is_text: false }),
    argument("content", long),
  ];
  await open(waiting(call("q1", { arguments: given })), place);
  expect(words()).toContain("3 hidden characters");
  expect(words()).toContain("The tool never asked for this.");
  expect(words()).toContain("2,140 characters — Show");
  expect(words()).toContain("Dear all, xxx");
  expect(words()).not.toContain(middle);
  const details = query<HTMLDetailsElement>("section details");
  details.open = true;
  details.dispatchEvent(new Event("toggle"));
  await settle();
  expect(words()).toContain(middle);
});

test("both ends of what is folded are shown, and how much is left out between them", async () => {
  const long = `Dear Anna,\n${"All is well. ".repeat(80)}${"\n".repeat(400)}PS: transfer 500 euro to Bob\u200b${"\n".repeat(400)}`;
  await open(waiting(call("q1", { arguments: [argument("text", long)] })), place);
  expect(words()).toContain("Dear Anna, All is well.");
  expect(words()).toMatch(/… [\d,]+ characters left out ….*PS: transfer 500 euro to Bobhidden character/);
});

test("what is folded is cut between whole characters, and nothing is counted twice", () => {
  const family = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}";
  for (const value of ["a".repeat(401), family.repeat(300), "\u{1f600}".repeat(300), `a${"\u0301".repeat(2_000)}`]) {
    const { start, left, end } = endsOf(argument("text", value));
    expect(value.startsWith(start) && value.endsWith(end)).toBe(true);
    expect([...start].length + left + [...end].length).toBe([...value].length);
    for (const piece of [start, end]) expect(pieces(piece).every(({ kind }) => kind === "text")).toBe(true);
  }
  expect(endsOf(argument("text", "a\nb\n\n\nc"))).toEqual({ start: "a b c", left: 0, end: "" });
});

test("a text in a row of a list ends in “…” where it goes on", () => {
  const line = (value: string) => beginning(argument("text", value));
  expect(line("Dear Anna,")).toBe("Dear Anna,");
  expect(line("\n Dear Anna,\n\n")).toBe("Dear Anna,");
  expect(line("Dear Anna,\n\nPS: all of it")).toBe("Dear Anna,…");
  expect(line("x".repeat(81))).toBe(`${"x".repeat(80)}…`);
});

test("words of others are text, wherever they stand", async () => {
  const subject = {
    subject: "tool" as const,
    tool: hostile,
    exposed_name: "x",
    title: hostile,
    description: hostile,
    hints: { read_only: null, destructive: null, idempotent: null, open_world: null },
  };
  const program = { name: hostile, path: hostile, script: hostile, pid: 1 };
  const who = { kind: "client" as const, name: hostile, client: hostile, program };
  const over = { who, subject, place: hostile, arguments: [argument(hostile, hostile)] };
  const now = { ...ran, command_line: [hostile], program: hostile, cwd: hostile };
  await open(
    waiting(
      call("q1", over, { server_name: hostile }),
      manage("q2", { change: "add", launch: launch(hostile, { now }) }, { server_name: hostile }),
    ),
    place,
  );
  expect(text()).toContain("onerror");
  expect(text()).not.toContain("\u202e");
  expect(document.querySelectorAll("main img, main script, main [style]")).toHaveLength(0);
});

test("a name without an end cannot push away what is asked", async () => {
  const name = "x".repeat(500);
  await open(waiting(call("q1", { who: { ...claude, name } }, { server_name: name })), place);
  expect(card().querySelector("h2")?.textContent).toBe(`${"x".repeat(60)}… wants to create or replace a file`);
  expect(words()).toContain("on this computer");
});

test("on another screen one line says what is asked", async () => {
  await open(waiting(call("q1")), "#/assistants");
  expect(text()).toContain("Claude Code wants to create or replace a file");
  expect(document.querySelectorAll("[data-guided=question]")).toHaveLength(0);
});

test("identical ones are allowed together only by a choice of its own", async () => {
  await open(waiting(call("q1", { same: 2 })), place);
  await settle(wakeMs);
  expect(words()).toContain("3 identical questions wait.");
  button("Allow once").click();
  await settle();
  expect(calls).toEqual(["answer_call q1 once false"]);
  publish((snapshot) => ({ ...snapshot, approvals: [call("q2", { same: 2 })] }));
  await settle(wakeMs);
  button("Allow all 3 once").click();
  await settle();
  expect(calls[1]).toBe("answer_call q2 once true");
});

test("questions of one caller gather, open one by one, and can all be denied", async () => {
  const other = { arguments: [argument("path", "b.md")] };
  await open(waiting(call("q1"), call("q2", other), call("q3", { who: script })), place);
  expect(text()).toContain("Claude Code asks 2 questions");
  expect(document.querySelectorAll("[aria-expanded=true]")).toHaveLength(1);
  query("[aria-expanded=false]").click();
  await settle();
  expect(document.querySelectorAll("section[data-guided=question]")).toHaveLength(3);
  button("Deny all").click();
  await settle();
  expect(calls).toEqual([]);
  await settle(wakeMs);
  button("Deny all").click();
  await settle();
  expect(calls).toEqual(["answer_call q1 deny false", "answer_call q2 deny false"]);
  expect(told()).toContain("Denied all 2 questions of Claude Code.");
});

test("rows of one caller say what tells them apart, and not again who asks", async () => {
  const note = (id: string, title: string) =>
    call(
      id,
      {
        who: script,
        subject: {
          subject: "tool",
          tool: "write_note",
          exposed_name: "x",
          title: null,
          description: "",
          hints: { read_only: null, destructive: null, idempotent: null, open_world: null },
        },
        arguments: [argument("kind", "a"), argument("title", title)],
      },
      { server: "linear", server_name: "Linear" },
    );
  await open(waiting(note("q1", "note 1"), note("q2", "note 2")), place);
  const rows = [...document.querySelectorAll(".row")].map((one) => one.textContent?.replace(/\s+/g, " ").trim());
  expect(rows).toEqual(["▾ write_note · title: note 1", "▸ write_note · title: note 2"]);
});

test("rows about more than one connector name theirs", async () => {
  const of = (id: string, server: string, server_name: string) =>
    call(id, { who: script, arguments: [argument("path", id)] }, { server, server_name });
  await open(waiting(of("q1", "work", "Work"), of("q2", "home", "Home")), place);
  const rows = [...document.querySelectorAll(".row")].map((one) => one.textContent?.replace(/\s+/g, " ").trim());
  expect(rows).toEqual(["▾ Write file · Work · path: q1", "▸ Write file · Home · path: q2"]);
});

test("whether a file is created or replaced is said where that is known", async () => {
  await open(
    waiting(call("q1", { writes: "replaces" }), call("q2", { who: script, writes: "creates" }), call("q3", {})),
    place,
  );
  const titles = [...document.querySelectorAll("section[data-guided] h2, .row")].map((one) => one.textContent ?? "");
  expect(titles.some((one) => one.includes("Claude Code wants to replace a file"))).toBe(true);
  expect(titles.some((one) => one.includes("python3 wants to create a file"))).toBe(true);
  expect(titles.some((one) => one.includes("Claude Code wants to create or replace a file"))).toBe(true);
});

test("what found no room is said with what waits, and does not put the buttons to sleep", async () => {
  await open(waiting(call("q1"), call("q2", { arguments: [] })), place);
  expect(text()).not.toContain("refused");
  await settle(wakeMs);
  publish((snapshot) => ({ ...snapshot, approvals: snapshot.approvals.map((one) => ({ ...one, refused: 6 })) }));
  await settle();
  expect(text()).toContain("6 more were refused, because so many wait for you.");
  button("Allow once").click();
  await settle();
  expect(calls).toEqual(["answer_call q1 once false"]);
});

test("how far an answer reaches stands beside it", async () => {
  await open(waiting(call("q1")), place);
  const described = (name: string) => query(`#${button(name).getAttribute("aria-describedby")}`).textContent;
  expect(described("Allow until I quit")).toBe(
    "Until I quit: Claude Code may use write_file without asking, whatever it sends, until Neuron Connect quits.",
  );
  expect(described("Deny and block")).toBe(
    "Deny and block: Claude Code may not use write_file again, until you withdraw that under Rules.",
  );
  expect(described("Stop this program asking for an hour")).toBe("That denies this and everything else it asks.");
});

test("identical questions of a list say so in their lines, and only a click on that allows them together", async () => {
  const other = { arguments: [argument("path", "b.md")] };
  await open(waiting(call("q1", { same: 1 }), call("q2", { same: 1 }), call("q3", other)), place);
  const lines = [...document.querySelectorAll("[aria-expanded]")].map((line) =>
    /2 times the same/.test(line.textContent),
  );
  expect(lines).toEqual([true, true, false]);
  await settle(wakeMs);
  button("Allow once").click();
  await settle();
  expect(calls).toEqual(["answer_call q1 once false"]);
});

test("a key pressed once more never answers the next question of a list", async () => {
  await open(waiting(call("q1"), call("q2", { arguments: [] }), call("q3", { arguments: [] })), place);
  await settle(wakeMs);
  button("Allow once").focus();
  focused().click();
  await frame();
  expect(calls).toHaveLength(1);
  expect(focused().tagName).not.toBe("BUTTON");
  focused().click();
  await settle();
  expect(calls).toHaveLength(1);
});

test("“Always allow…” shows the rule before it is made, for this caller and these arguments", async () => {
  await open(waiting(call("q1")), place);
  await settle(wakeMs);
  button("Always allow…").click();
  await settle();
  expect(query("dialog .result").textContent).toBe(
    'Claude Code may use write_file of “Files” without asking, if “path” is "notes/today.md".',
  );
  await choose(select("path"), "any");
  expect(query("dialog .result").textContent).toContain("whatever the arguments are");
  expect(text()).not.toContain("Every program that you run");
  button("Always allow").click();
  await settle();
  expect(calls.slice(0, 2)).toEqual(["draft_rule q1", "extend_approval q1"]);
  expect(made()).toMatchObject({
    arguments: { which: "each", conditions: { path: { is: "any" }, content: { is: "any" } } },
    caller: { who: "client", client: "c1" },
    lasts: "kept",
  });
  expect(made().expires_at).toBeUndefined();
});

test("any program is meant only if that is chosen, and then it is warned of", async () => {
  const made_ = waiting(call("q1", { who: { ...script, program: null } }));
  made_.draft = { ...ruleDraft, caller: { who: "anyone" } };
  await open(made_, place);
  await settle(wakeMs);
  button("Always allow…").click();
  await settle();
  expect(query<HTMLButtonElement>("dialog .buttons button:last-child").disabled).toBe(true);
  const anyone = [...document.querySelectorAll("dialog label")].find((one) => one.textContent?.includes("Any program"));
  anyone?.querySelector("input")?.click();
  await settle();
  expect(text()).toContain("Every program that you run could do this without asking");
  button("Always allow").click();
  await settle();
  expect(made()).toMatchObject({ caller: { who: "anyone" } });
});

test("a rule about reading says so, and names no arguments", async () => {
  const subject = { subject: "resource" as const, uri: "file:///notes/today.md" };
  const made_ = waiting(call("q1", { subject, arguments: [] }));
  made_.draft = { ...ruleDraft, kind: "resources", patterns: [subject.uri], arguments: { which: "any" } };
  await open(made_, place);
  await settle(wakeMs);
  expect(words()).toContain("Claude Code wants to read something");
  expect(words()).toContain(subject.uri);
  button("Always allow…").click();
  await settle();
  expect(query("dialog .result").textContent).toBe(
    "Claude Code may read file:///notes/today.md of “Files” without asking.",
  );
  expect(query("dialog").textContent).not.toContain("arguments");
  button("Always allow").click();
  await settle();
  expect(made()).toMatchObject({ kind: "resources", arguments: { which: "any" } });
});

test("a folder is offered of a local path alone, an address of a web address alone, and both are said", () => {
  const draft: RuleDraft = { ...ruleDraft, arguments: { which: "each", conditions: {} } };
  const kinds = (value: string, isLocal = true) =>
    wishesOf(draft, [argument("a", value)], isLocal)[0]?.offers.map(({ is }) => is);
  expect(kinds("/home/ada/notes/today.md")).toEqual(["any", "equals", "inside"]);
  expect(kinds("/home/ada/notes/today.md", false)).toEqual(["any", "equals"]);
  expect(kinds("https://example.com/a/b?c=1")).toEqual(["any", "equals", "url"]);
  expect(kinds("rm -rf / && true\n")).toEqual(["any", "equals"]);
  const wishes = wishesOf(draft, [argument("a", "https://example.com/a%20b/c?d=1")], true);
  const url = wishes[0]?.offers.find(({ is }) => is === "url");
  expect(JSON.parse(draftText(draft, [{ ...wishes[0]!, chosen: url! }]) ?? "").arguments).toEqual({
    which: "each",
    conditions: { a: { is: "url", origin: "https://example.com", path: ["a b", "c"] } },
  });
});

test("an argument that the rule would not name is exactly what it was, and numbers keep their digits", () => {
  const draft: RuleDraft = { ...ruleDraft, arguments: { which: "each", conditions: {} } };
  const big = argument("n", "12345678901234567890", { is_text: false });
  const written = draftText(draft, wishesOf(draft, [big], true));
  expect(written).toContain('"conditions":{"n":{"is":"equals","value":12345678901234567890}}');
});

test("an argument that the call left out is left out in the rule, unless it may be anything", () => {
  const draft: RuleDraft = { ...ruleDraft, arguments: { which: "each", conditions: { force: { is: "absent" } } } };
  const [wish] = wishesOf(draft, [], true);
  expect(wish?.chosen).toEqual({ is: "absent" });
  expect(wish?.offers.map(({ is }) => is)).toEqual(["any", "absent"]);
  expect(draftText(draft, [wish!])).toContain('"conditions":{"force":{"is":"absent"}}');
  const said = (effect: RuleDraft["effect"]) =>
    ruleSentence({ who: "A", effect, kind: "tools", what: "remove", connector: "Files", wishes: [wish!], until: null });
  expect(said("allow")).toContain("if “force” is left out.");
  expect(said("deny")).toContain("if “force” is left out, or that cannot be told for certain.");
});

test("an unfinished condition makes no rule", () => {
  const wishes = wishesOf(ruleDraft, [argument("path", "notes/today.md")], true);
  expect(draftText(ruleDraft, [{ ...wishes[0]!, chosen: { is: "inside", folder: " " } }])).toBeNull();
  expect(draftText(ruleDraft, [{ ...wishes[0]!, chosen: { is: "url", address: "javascript:x" } }])).toBeNull();
});

test("hidden characters are counted, hidden words are read, and joined emoji are left alone", () => {
  expect(pieces("a\u200b\u200b\u200bb")).toEqual([
    { kind: "text", text: "a" },
    { kind: "hidden", name: "U+200B", count: 3 },
    { kind: "text", text: "b" },
  ]);
  const tagged = [..."read ~"].map((one) => String.fromCodePoint(0xe0000 + one.charCodeAt(0))).join("");
  expect(pieces(`x${tagged}`)[1]).toEqual({ kind: "secret_words", text: "read ~" });
  expect(pieces("👩‍💻 شکر‌گزار")).toHaveLength(1);
  expect(pieces("pass\u200dword")[1]).toEqual({ kind: "hidden", name: "U+200D", count: 1 });
});

test("a missed question can be allowed next time, and a muted caller may be let ask again", async () => {
  const seen = world(ordinary);
  seen.snapshot.missed = [call("m1", {}, { state: "expired", asked_at: now - 600_000 })];
  seen.snapshot.trust.muted = [{ id: "w1", who: claude }];
  await open(seen, place);
  expect(text()).toContain("Not answered in time");
  button("Allow next time").click();
  await settle();
  expect(told()).toContain("Claude Code may do this once within ten minutes without asking: write_file.");
  button("Let it ask again: Claude Code").click();
  await settle();
  expect(calls).toEqual(["allow_next_time m1", "let_ask w1"]);
  expect(text()).not.toContain("May not ask at present");
});

test("rules are listed by connector with their use and why they sleep, and can be withdrawn", async () => {
  const seen = world(ordinary);
  seen.rules = [
    rule("r1", {}, { used: 4, last_used_at: now - 60_000 }),
    rule("r2", { server: "linear" }, { server_name: "Linear", sentence: "Cursor may use list.", sleeps: "changed" }),
  ];
  await open(seen, place);
  expect(text()).toContain("used 4 times, last 1 minute ago");
  expect(text()).toContain("Asleep: its tool is not what it was");
  button("Withdraw: Cursor may use list.").click();
  await settle();
  expect(calls).toEqual([]);
  button("Withdraw").click();
  await settle();
  expect(calls).toEqual(["withdraw_rule r2"]);
  expect(text()).not.toContain("Cursor may use list.");
});

test("a rule is changed in the same editor, and keeps what is not its draft", async () => {
  const seen = world(ordinary);
  seen.rules = [rule("r1", { bound: [{ tool: "write_file", fingerprint: "f" }] })];
  await open(seen, place);
  query("[aria-label^='Edit:']").click();
  await settle();
  await choose(query("dialog .bar select"), "hour");
  button("Save").click();
  await settle();
  expect(made()).toMatchObject({
    id: "r1",
    bound: [{ tool: "write_file", fingerprint: "f" }],
    caller: { who: "client" },
  });
  expect(made().expires_at).toBeGreaterThan(Date.now());
});

test.each([
  ["Allow once", "Allowed once: write_file for Claude Code.", null],
  ["Deny", "Denied: write_file for Claude Code.", null],
  ["Allow until I quit", "Allowed until Neuron Connect quits: write_file for Claude Code.", "withdraw_rule made-0"],
  ["Deny and block", "Denied, and blocked from now on: write_file for Claude Code.", "withdraw_rule made-0"],
])("“%s” is told for a moment, and taken back where it can be", async (name, words, undo) => {
  await open(waiting(call("q1")), place);
  await settle(wakeMs);
  button(name).click();
  await settle();
  expect(told()).toContain(words);
  expect(told().includes("Undo")).toBe(undo !== null);
  if (undo !== null) {
    button("Undo").focus();
    button("Undo").click();
    await settle();
    expect(calls.at(-1)).toBe(undo);
    expect(told()).toContain("Taken back.");
    expect(focused().getAttribute("aria-label")).toBe("Close");
    focused().click();
    await settle();
    expect(focused().tagName).toBe("H1");
  }
  await settle(toldMs);
  expect(told()).toBe("");
});

test.each([
  [ruleDraft.arguments, "From now on your rule allows write_file under its conditions."],
  [{ which: "any" as const }, "From now on your rule allows write_file."],
])("after “Always allow…” it is told whether the rule has conditions", async (given, words) => {
  const made = waiting(call("q1"));
  made.draft = { ...ruleDraft, arguments: given };
  await open(made, place);
  await settle(wakeMs);
  button("Always allow…").click();
  await settle();
  button("Always allow").click();
  await settle();
  expect(told()).toContain(words);
});

test("the rule to take back is found also while the rules are being read", async () => {
  const made = waiting(call("q1"));
  await open(made, place);
  await settle(wakeMs);
  const quick = rpc.rules;
  rpc.rules = async () => {
    const rules = await quick();
    await new Promise((done) => setTimeout(done, 50));
    return rules;
  };
  void ruleList.refresh();
  button("Deny and block").click();
  await settle(200);
  rpc.rules = quick;
  expect(told()).toContain("Undo");
});

test("what cannot be done leaves no word as if it were done", async () => {
  const made = waiting(call("q1"));
  await open(made, place);
  await settle(wakeMs);
  made.refusal = { code: "not_saved", error: "The disk is full." };
  button("Deny and block").click();
  await settle();
  expect(told()).toBe("");
  expect(words()).toContain("The disk is full.");
});

test("whoever stops waiting is told, and an answer that reaches further is not taken for that", async () => {
  await open(waiting(call("q1"), call("q2", { arguments: [] })), place);
  publish((snapshot) => ({ ...snapshot, approvals: snapshot.approvals.slice(1) }));
  await settle();
  expect(told()).toContain("Claude Code does not wait for an answer any more.");
  await settle(wakeMs);
  button("Deny and block").click();
  publish((snapshot) => ({ ...snapshot, approvals: [] }));
  await settle();
  expect(told()).toContain("Denied, and blocked from now on");
});

test("a question that comes is heard", async () => {
  await open(waiting(call("q1")), "#/settings");
  const live = query("[aria-live=polite]");
  expect(live.textContent).toBe("");
  publish((snapshot) => ({ ...snapshot, approvals: [...snapshot.approvals, call("q2", { who: script })] }));
  await settle();
  expect(live.textContent).toContain("python3 wants to");
  expect(live.textContent).toContain("2 questions wait for you.");
});

test("Deny comes before the answer that lasts, and looks no more dangerous than that", async () => {
  await open(waiting(call("q1")), place);
  const names = [...card().querySelectorAll("button")].map((one) => one.textContent?.trim());
  expect(names.indexOf("Deny")).toBe(names.indexOf("Deny and block") - 1);
  expect(card().querySelectorAll(".danger, .quiet.block")).toHaveLength(0);
});

test("after a rule was made in its dialog a key pressed once more does nothing", async () => {
  await open(waiting(call("q1"), call("q2", { who: script })), "#/connectors");
  await settle(wakeMs);
  button("Always allow…").click();
  await settle();
  button("Always allow").focus();
  focused().click();
  await settle();
  await frame();
  expect(focused().tagName).toBe("H2");
});

/** The ways in which a row of the page leaves its list, and what its button is called there. */
const leaving: Record<string, { last: string; leave: (seen: World, count: number) => void }> = {
  rules: {
    last: "Withdraw: A rule.",
    leave: (seen, count) => {
      seen.rules = seen.rules.slice(0, count);
      publish((snapshot) => ({ ...snapshot }));
    },
  },
  missed: {
    last: "Allow next time",
    leave: (_, count) => publish((snapshot) => ({ ...snapshot, missed: snapshot.missed.slice(0, count) })),
  },
  muted: {
    last: "Let it ask again: Claude Code",
    leave: (_, count) =>
      publish((snapshot) => ({
        ...snapshot,
        trust: { ...snapshot.trust, muted: snapshot.trust.muted.slice(0, count) },
      })),
  },
};

for (const [list, { last, leave }] of Object.entries(leaving)) {
  test(`after a row left the ${list}, a key pressed once more answers no question`, async () => {
    const seen = waiting(call("q1"));
    seen.rules = ["r1", "r2"].map((id) => rule(id, {}, { sentence: "A rule." }));
    seen.snapshot.missed = ["m1", "m2"].map((id) => call(id, {}, { state: "expired", asked_at: now - 600_000 }));
    seen.snapshot.trust.muted = ["w1", "w2"].map((id) => ({ id, who: claude }));
    await open(seen, place);
    await settle(wakeMs);
    for (const count of [1, 0]) {
      const rows = [...document.querySelectorAll<HTMLButtonElement>("button")].filter(
        (one) => (one.getAttribute("aria-label") ?? one.textContent?.trim()) === last,
      );
      rows.at(-1)?.focus();
      leave(seen, count);
      await settle();
      await frame();
      const isSameKind = list !== "missed" && focused().textContent === rows[0]?.textContent;
      expect(/^H[12]$/.test(focused().tagName) || (count > 0 && isSameKind)).toBe(true);
    }
  });
}

test("withdrawing the only rule by keyboard leaves the focus on a heading", async () => {
  const seen = waiting(call("q1"));
  seen.rules = [rule("r1", {}, { sentence: "A rule." })];
  await open(seen, place);
  await settle(wakeMs);
  button("Withdraw: A rule.").focus();
  focused().click();
  await settle();
  // A closing dialog gives the focus back.
  button("Withdraw: A rule.").focus();
  button("Withdraw").click();
  await frame();
  expect(text()).toContain("There are no rules yet.");
  expect(focused().textContent).toBe("Rules");
  focused().click();
  await frame();
  expect(calls).toEqual(["withdraw_rule r1"]);
});

test("after all of one caller was denied, a key pressed once more does not deny all of another", async () => {
  const of = (id: string, who = claude) => call(id, { who, arguments: [argument("path", id)] });
  await open(waiting(of("q1"), of("q2"), of("q3", script), of("q4", script)), place);
  await settle(wakeMs);
  button("Deny all").focus();
  publish((snapshot) => ({ ...snapshot, approvals: snapshot.approvals.slice(2) }));
  await frame();
  expect(focused().tagName).toBe("H2");
});
