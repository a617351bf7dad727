import { expect, test } from "vitest";

import { wordDiff, lineDiff, sideOf } from "../src/lib/diff";
import { comparedRows, standsOutWords } from "../src/lib/launch";
import { wakeMs } from "../src/lib/question";
import { countsOf } from "../src/lib/review";
import { changeSentences, takesWords } from "../src/lib/tool-change";
import type { Reviews, StandsOut } from "../src/lib/bridge";
import { calls, publish, type World } from "./rpc-fixture";
import { button, focused, frame, go, open, query, settle, text } from "./window";
import {
  call,
  connector,
  contacted,
  finding,
  launch,
  ordinary,
  promptReview,
  promptText,
  ran,
  script,
  tool,
  toolReview,
  toolText,
  toolsReview,
  world,
} from "./worlds";

const hostile = '<img src=x onerror="document.title=1">\u202e';

function toReview(over: Partial<Reviews>): World {
  const made = world(ordinary);
  made.snapshot.reviews = { launches: [], tools: [], left: [], proposals: [], asleep: [], ...over };
  return made;
}

const spoken = () => text().replace(/\s+/g, " ");

async function seen(over: Partial<Reviews>, place = "#/review"): Promise<void> {
  await open(toReview(over), place);
  await settle(wakeMs);
}

test("several entries of a file are one list with one button, and what stands out is not ticked", async () => {
  const serious: StandsOut[] = [{ what: "inline_code", program: "sh" }];
  await seen({ launches: [launch("a"), launch("b"), launch("c", { stands_out: serious })] });
  expect(spoken()).toContain("These 3 connectors are in your file");
  expect(spoken()).toContain("sh runs a script that is written into the command itself");
  button("Allow the 2 that are ticked").click();
  await settle();
  expect(calls).toEqual(["approve_launches launch-a launch-b"]);
});

test("a list with nothing ticked says what to do, and allows nothing", async () => {
  await seen({ launches: [launch("a"), launch("b")] });
  for (const name of ["a", "b"]) query<HTMLInputElement>(`[aria-label='Allow ${name}']`).click();
  await settle();
  expect(button("Tick what may run").disabled).toBe(true);
});

test("a tick decides, and each entry can be seen whole and kept blocked by itself", async () => {
  await seen({ launches: [launch("a"), launch("b")] });
  query<HTMLInputElement>("[aria-label='Allow a']").click();
  await settle();
  button("Allow the one that is ticked");
  query("[aria-expanded=false]").click();
  await settle();
  expect(spoken()).toContain("your key WEATHER_KEY");
  button("Keep blocked").click();
  await settle();
  expect(calls).toEqual(["keep_blocked launch-a"]);
});

test("the first list says what its ticks mean", async () => {
  await seen({ launches: [launch("a"), launch("b")] });
  expect(document.querySelectorAll("main input:checked")).toHaveLength(2);
  expect(spoken()).toContain("Untick what you do not know");
});

test("an entry that a program asked for stands alone, and says who", async () => {
  await seen({ launches: [launch("a"), launch("b", { came_from: { from: "caller", who: script } })] });
  expect(spoken()).not.toContain("in your file");
  expect(spoken()).toContain("python3 asked for it.");
  expect(spoken()).toContain("/home/ada/bots/helper.py");
});

test("a changed command stands beside the approved one, and what is the same is said once", async () => {
  const before = { ...ran, command_line: ["npx", "-y", "weather-mcp@1.0.0"] };
  await seen({ launches: [launch("weather", { why: { why: "changed" }, before })] });
  expect(spoken()).toContain("weather has changed");
  const [left, right] = [...document.querySelectorAll("main .side")].map((one) =>
    one.textContent?.replace(/\s+/g, " "),
  );
  expect(left).toContain("Approved before");
  expect(left).toContain("weather-mcp@1.0.0");
  expect(right).toContain("--units metric");
  expect(document.querySelectorAll("main .side")).toHaveLength(2);
});

test("a value that looks like a key shows on a click alone, and that it changed is said without it", async () => {
  const given = (name: string, template: string) => ({ name, template, from_environment: [], secrets: [] });
  const now = { ...ran, env: [given("TOKEN", "abc123"), given("MODE", "fast"), given("KEY", "${secret:KEY}")] };
  await seen({ launches: [launch("a", { now })] });
  expect(spoken()).toContain("MODE = fast");
  expect(spoken()).toContain("KEY = ${secret:KEY}");
  expect(text()).not.toContain("abc123");
  query<HTMLButtonElement>("[aria-label='Show: TOKEN']").click();
  await settle();
  expect(spoken()).toContain("TOKEN = abc123");
  const before = { ...now, env: [given("TOKEN", "xyz789"), ...now.env.slice(1)] };
  publish((snapshot) => ({
    ...snapshot,
    reviews: { ...snapshot.reviews, launches: [launch("b", { now, before, why: { why: "changed" } })] },
  }));
  await settle();
  expect(text()).not.toMatch(/abc123|xyz789/);
  expect(spoken()).toContain("The value is another than before.");
  query<HTMLButtonElement>("[aria-label='Show: TOKEN']").click();
  await settle();
  expect(spoken()).toContain("xyz789");
});

test("a setting that is gone or new shows as such", () => {
  const before = { ...contacted, headers: [], sign_in: ["issuer: https://a.example"] };
  const rows = comparedRows({ now: contacted, before });
  expect(rows.find(({ key }) => key === "header X-Team")).toMatchObject({ before: null });
  expect(rows.find(({ key }) => key === "setting issuer")).toMatchObject({ isGone: true, text: "" });
  expect(rows.find(({ key }) => key === "contacts")).toMatchObject({ before: "same" });
});

test("what stands out is keeping blocked, or the yes to something new, or neither once it changed", async () => {
  await seen({ launches: [launch("a", { stands_out: [{ what: "wide_folder", argument: "/" }] })] });
  expect(query("main .primary").textContent?.trim()).toBe("Keep blocked");
  await open(toReview({ launches: [launch("a")] }), "#/review");
  expect(query("main .primary").textContent?.trim()).toBe("Allow to run");
  await open(toReview({ launches: [launch("a", { why: { why: "changed" }, before: contacted })] }), "#/review");
  expect(document.querySelectorAll("main .primary")).toHaveLength(0);
});

test("the yes and the no of every review stand in one order, below what they are about", async () => {
  const proposal = { id: "p1", server: "files", server_name: "Files", patterns: ["read_*"], tools: ["read_file"] };
  const serious: StandsOut[] = [{ what: "wide_folder", argument: "/" }];
  await seen({
    launches: [
      launch("a", { why: { why: "changed" } }),
      launch("b", { stands_out: serious, why: { why: "turned_on" } }),
    ],
    tools: [toolsReview("pg")],
    proposals: [proposal],
  });
  const answers = /^(Allow|Approve|Keep)/;
  const cards = [...document.querySelectorAll("main [data-guided]")];
  const found = cards.map((card) =>
    [...card.querySelectorAll("button")].filter(({ textContent }) => answers.test(textContent?.trim() ?? "")),
  );
  expect(cards).toHaveLength(8);
  for (const [index, buttons] of found.entries()) {
    expect(buttons.map(({ textContent }) => textContent?.trim().startsWith("Keep"))).toEqual([false, true]);
    expect(cards[index]?.lastElementChild?.contains(buttons[0] ?? null)).toBe(true);
  }
});

test("a fixed version is looked up on a click alone, and written on another", async () => {
  await seen({ launches: [launch("weather")] });
  expect(calls).toEqual([]);
  button("Choose a fixed version…").click();
  await settle();
  expect(spoken()).toContain("The newest version of weather-mcp is 1.4.2.");
  button("Always run 1.4.2").click();
  await settle();
  expect(calls).toEqual(["versions_of weather", "use_version weather 1.4.2"]);
});

test("what looks dangerous stands first, says why in words, and is never approved with the others", async () => {
  await seen({ tools: [toolsReview("postgres")] });
  expect(countsOf(toolsReview("x"))).toBe("1 looks dangerous · 1 changed · 1 reworded · 2 new");
  expect(query("h3").textContent).toBe("query");
  expect(spoken()).toContain("It tells the assistant to read a private key and pass it on.");
  expect(spoken()).toContain("3 hidden characters");
  expect(query("[data-guided=tool-review] .primary").textContent?.trim()).toBe("Keep blocked");
  button("Approve several…").click();
  await settle();
  expect(query("dialog").textContent).not.toContain("query");
  button("Approve 2").click();
  await settle();
  expect(calls).toEqual(["approve_tools postgres list_views@v-list_views list_schemas@v-list_schemas"]);
  expect(document.querySelectorAll("h3")).toHaveLength(3);
});

test("what changed since it was approved is never approved along with what is new", async () => {
  await seen({ tools: [toolsReview("postgres")] });
  button("Approve several…").click();
  await settle();
  const groups = [...document.querySelectorAll("dialog fieldset")];
  const ticks = (group: Element) => [...group.querySelectorAll("input")].map(({ checked }) => checked);
  expect(groups.map((group) => [group.querySelector("legend")?.textContent, ...ticks(group)])).toEqual([
    ["New", true, true],
    ["Changed since you approved them", false],
    ["Described in other words now", false],
  ]);
  expect(groups[1]?.textContent).toContain("Now also takes: analyze (yes or no)");
  for (const tick of document.querySelectorAll<HTMLInputElement>("dialog input:checked")) tick.click();
  await settle();
  expect(button("Tick what you approve").disabled).toBe(true);
  groups[1]?.querySelector("input")?.click();
  await settle();
  button("Approve 1").click();
  await settle();
  expect(calls).toEqual(["approve_tools postgres explain@v-explain"]);
});

test("a new tool that says it may delete is ticked by hand alone, and each says what it does and claims", async () => {
  const hints = { read_only: null, destructive: true, idempotent: null, open_world: null };
  const description = "Delete a table.\nIt is gone then.";
  const drop = toolReview("drop_table", { now: toolText({ description, hints }) });
  await seen({ tools: [toolsReview("postgres", { tools: [drop, toolReview("list_views")] })] });
  button("Approve several…").click();
  await settle();
  const [row] = document.querySelectorAll("dialog li");
  expect(row?.textContent?.replace(/\s+/g, " ")).toContain("Delete a table.… says it may delete or overwrite");
  expect(row?.querySelector("input")?.checked).toBe(false);
  button("Approve 1").click();
  await settle();
  expect(calls).toEqual(["approve_tools postgres list_views@v-list_views"]);
});

test("a reworded tool is said to keep working with the approved words, and is not called blocked", async () => {
  const [reworded] = toolsReview("x").tools.filter(({ state }) => state === "reworded");
  await seen({ tools: [toolsReview("postgres", { tools: reworded ? [reworded] : [] })] });
  expect(spoken()).toContain("assistants read the words you approved, until you approve the new ones.");
  expect(spoken()).not.toContain("Keep blocked");
  button("Keep the approved words");
});

test("of a tool that was approved as something else neither answer stands out", async () => {
  const [, explain, reworded, fresh] = toolsReview("x").tools;
  const standing = async (one: typeof explain) => {
    await seen({ tools: [toolsReview("pg", { tools: one ? [one] : [] })] });
    return [...new Set([...document.querySelectorAll("main .primary")].map(({ textContent }) => textContent?.trim()))];
  };
  expect(await standing(explain)).toEqual([]);
  expect(await standing(reworded)).toEqual([]);
  expect(await standing(fresh)).toEqual(["Approve"]);
});

test("each tool can be decided alone, in exactly the version that was shown", async () => {
  await seen({ tools: [toolsReview("postgres")] });
  button("Approve this version").click();
  await settle();
  expect(calls).toEqual(["approve_tools postgres query@v-query"]);
  await settle(wakeMs);
  button("Keep blocked").click();
  await settle();
  expect(calls[1]).toBe("keep_tool_blocked postgres explain v-explain");
});

test("a second click never decides about what moved up, and the focus goes to its heading", async () => {
  await seen({ tools: [toolsReview("postgres")] });
  button("Approve this version").focus();
  focused().click();
  await frame();
  expect(focused().tagName).toBe("H3");
  query<HTMLButtonElement>("[data-guided=tool-review] .primary").click();
  await settle();
  expect(calls).toHaveLength(1);
});

test("what a changed tool takes and claims is said in sentences, with the JSON folded below", async () => {
  const hints = { read_only: true, destructive: null, idempotent: null, open_world: null };
  const before = toolText({ hints });
  const now = toolText({
    hints: { ...hints, read_only: false },
    input_schema: '{ "properties": { "sql": { "type": "string" }, "send_copy_to": { "type": "string" } } }',
  });
  await seen({ tools: [toolsReview("pg", { tools: [toolReview("a", { state: "changed", before, now })] })] });
  expect([...document.querySelectorAll("main li")].map((one) => one.textContent)).toEqual([
    "May now change things: it no longer says that it only reads.",
    "Now describes itself so: says it changes data",
    "Now also takes: send_copy_to (text)",
    "What it takes is described in another way.",
  ]);
  expect(query<HTMLDetailsElement>("main details").open).toBe(false);
  expect(query("main details").textContent).toContain('"send_copy_to"');
  expect(query("main details").querySelectorAll(".side")).toHaveLength(2);
});

test("what a tool says besides is shown before it is opened, and compared where it changed, with what it hides", async () => {
  const also = (usage: string) => JSON.stringify({ usage });
  const changed = { state: "changed" as const, before: toolText({ also: also("One.") }) };
  await seen({
    tools: [
      toolsReview("pg", {
        tools: [
          toolReview("changed", { ...changed, now: toolText({ also: also("Two\u200b.") }) }),
          toolReview("new", { now: toolText({ also: also("Three.") }) }),
        ],
      }),
    ],
  });
  const [first, second] = [...document.querySelectorAll("[data-guided=tool-review]")].map((one) => one.textContent);
  for (const words of ["Also says", "One.", "Two", "hidden character"]) expect(first).toContain(words);
  expect(first).toContain("What it also says to assistants changed.");
  expect(second).toContain('Also says: {"usage":"Three."}');
});

test("no difference of a tool is without a sentence", () => {
  const schema = (properties: object, more: object = {}) =>
    toolText({ input_schema: JSON.stringify({ type: "object", properties, ...more }) });
  const sql = { sql: { type: "string" } };
  const cases: [ReturnType<typeof schema>, ReturnType<typeof schema>, string[]][] = [
    [schema(sql), schema({ ...sql, n: { type: "integer" } }, { required: ["n"] }), ["Now also needs: n (a number)"]],
    [schema({ ...sql, n: {} }), schema(sql), ["No longer takes: n"]],
    [schema(sql, { required: ["sql"] }), schema(sql), ["No longer needs, but still takes: sql"]],
    [schema(sql), schema({ sql: { type: "array" } }), ["sql now takes a list instead of text"]],
    [schema(sql), schema({ sql: { type: "string", maxLength: 3 } }), ["sql is described in another way"]],
    [schema(sql), schema(sql, { anyOf: [{}] }), ["What it takes is described in another way."]],
    [schema(sql), toolText({ input_schema: "no JSON" }), ["What it takes is described in another way."]],
    [schema(sql), schema(sql, { required: ["sql"] }), ["Now also needs: sql (text)"]],
    [schema(sql), schema(sql, { required: ["x"] }), ["Now also needs: x (anything)"]],
    [
      schema({ __proto__: null, toString: {} }),
      schema({ ["__proto__"]: { type: "string" } }),
      ["Now also takes: __proto__ (text)", "No longer takes: toString"],
    ],
    [toolText(), toolText({ output_schema: "{}" }), ["Now describes what it answers."]],
    [toolText(), toolText({ also: "{}" }), ["What it also says to assistants changed."]],
  ];
  for (const [before, now, sentences] of cases) expect(changeSentences(before, now)).toEqual(sentences);
  expect(changeSentences(toolText(), toolText())).toEqual([]);
});

test("a new tool says what it takes before it is opened", () => {
  const properties = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`p${index}`, { type: "boolean" }]));
  const input_schema = JSON.stringify({ type: "object", properties, required: ["p0"] });
  expect(takesWords(toolText({ input_schema }))).toBe(
    "Takes: p0 (yes or no), p1 (yes or no, optional), p2 (yes or no, optional), p3 (yes or no, optional), " +
      "p4 (yes or no, optional), p5 (yes or no, optional), p6 (yes or no, optional), p7 (yes or no, optional), and 3 more",
  );
  expect(takesWords(toolText({ input_schema: '{"type":"object"}' }))).toBe("Takes nothing.");
  expect(takesWords(toolText({ input_schema: '{"oneOf":[]}' }))).toBe(null);
});

test("instructions are shown as text and approved by version", async () => {
  const instructions = { version: "i1", before: null, now: hostile, findings: [finding] };
  await seen({ tools: [toolsReview("pg", { tools: [], instructions })] });
  expect(spoken()).toContain("onerror");
  button("Approve this version").click();
  await settle();
  expect(calls).toEqual(["approve_instructions pg i1"]);
});

test("instructions can be kept from assistants, and that takes them out of the way", async () => {
  const instructions = { version: "i1", before: null, now: hostile, findings: [finding] };
  await seen({ tools: [toolsReview("pg", { tools: [], instructions })] });
  button("Keep blocked").click();
  await settle();
  expect(calls).toEqual(["keep_instructions_withheld pg i1"]);
});

test("what was left as it is waits for nobody, is folded away, and can still be approved in that version", async () => {
  const left = toolsReview("pg", {
    tools: [toolReview("drop", { state: "held", version: "d1", findings: [finding] })],
    prompts: [promptReview("sum")],
    instructions: { version: "i1", before: null, now: "Obey.", findings: [finding] },
  });
  await seen({ left: [left] });
  expect(spoken()).toContain("Nothing waits for your review.");
  expect(query<HTMLDetailsElement>("details").open).toBe(false);
  query("summary").click();
  await settle();
  expect(spoken()).toContain("3 things that you left as they are");
  expect([...document.querySelectorAll("button")].map((one) => one.textContent?.trim())).not.toContain("Keep blocked");
  const yes = [...document.querySelectorAll("button")].filter(
    (one) => one.textContent?.trim() === "Approve this version",
  );
  expect(yes).toHaveLength(3);
  for (const one of yes) one.click();
  await settle();
  expect(calls).toEqual(["approve_instructions pg i1", "approve_prompt pg sum v-sum", "approve_tools pg drop@d1"]);
});

test("the way from a tool that was left leads to it", async () => {
  await seen({ left: [toolsReview("pg", { tools: [toolReview("drop", { state: "held" })] })] }, "#/review/pg");
  expect(query<HTMLDetailsElement>("details").open).toBe(true);
  expect(focused().textContent).toContain("pg");
});

test("a prompt that looks dangerous is named as one, shown whole, and kept blocked unless the person says otherwise", async () => {
  const now = promptText({
    description: hostile,
    arguments: [
      { name: "text", description: "What to sum up\u200b", required: true },
      { name: "tone", description: null, required: false },
    ],
  });
  await seen({ tools: [toolsReview("pg", { tools: [], prompts: [promptReview("sum\u200b", { now })] })] });
  expect(query("main h3").textContent).toMatch(/^Prompt\s+sum.+/);
  for (const part of [
    "1 prompt looks dangerous",
    finding.sentence,
    "onerror",
    "text (needed): What to sum up",
    "tone (optional)",
  ])
    expect(spoken()).toContain(part);
  expect(document.querySelectorAll("main mark[title]").length, "hidden characters can be seen").toBeGreaterThan(1);
  expect([...document.querySelectorAll("main .primary")].map(({ textContent }) => textContent?.trim())).toEqual([
    "Keep blocked",
  ]);
  expect(spoken()).not.toContain("Approve several");
  button("Keep blocked").click();
  await settle();
  expect(calls).toEqual(["keep_prompt_blocked pg sum\u200b v-sum\u200b"]);
  expect(spoken()).toContain("Nothing waits for your review.");
});

test("a prompt that was approved as something else shows both, and a yes is to the version that is shown", async () => {
  const before = promptText({ description: "Sums up a text." });
  const prompts = [
    promptReview("sum", { state: "changed", before, now: promptText({ description: "Sums up secrets." }) }),
    promptReview("other"),
  ];
  await seen({ tools: [toolsReview("pg", { tools: [], prompts })] });
  expect(query("main del").textContent).toContain("a text");
  expect(query("main ins").textContent).toContain("secrets");
  button("Approve this version").click();
  await settle();
  expect(calls).toEqual(["approve_prompt pg sum v-sum"]);
  expect(spoken()).toContain("1 prompt looks dangerous");
});

test("a connector whose prompts wait needs the person", async () => {
  await seen({ tools: [toolsReview("files", { tools: [], prompts: [promptReview("sum")] })] }, "#/connectors");
  expect(spoken()).toContain("1 of its prompts waits for your review.");
});

test("what the file wants allowed is a proposal, and declining it comes first", async () => {
  const proposal = { id: "p1", server: "files", server_name: "Files", patterns: ["read_*"], tools: ["read_file"] };
  await seen({ proposals: [proposal] });
  expect(spoken()).toContain("connectors.json asks to let assistants use tools of Files without asking you");
  expect(query("main .primary").textContent?.trim()).toBe("Keep asking me");
  button("Allow without asking").click();
  await settle();
  expect(calls).toEqual(["answer_proposal p1 approve"]);
  expect(spoken()).toContain("Nothing waits for your review.");
});

test("where the decisions are lost, programs need a token until one button lets them in again", async () => {
  const made = toReview({});
  made.snapshot.trust = { ...made.snapshot.trust, api_mode: "token", api_mode_assumed: true };
  await open(made, "#/review");
  expect(spoken()).toContain("only assistants that are paired may connect until you say otherwise");
  button("Let all my programs in again").click();
  await settle();
  expect(calls).toEqual(["set_api_mode open"]);
  expect(spoken()).not.toContain("until you say otherwise");
});

const said = [
  { rule: "r1", sentence: "Any program on this computer may use read_file of Notes, whatever the arguments." },
];

test("with the look at another launch, what may happen without asking is kept only where that is ticked", async () => {
  const changed = launch("notes", { why: { why: "changed" }, stands_out: [], asleep: said });
  await seen({ launches: [changed] });
  expect(spoken()).toContain("One thing may happen without asking now.");
  expect(spoken()).toContain("may use read_file of Notes");
  button("Allow to run").click();
  await settle();
  expect(calls).toEqual(["approve_launches launch-notes"]);
});

test("a tick keeps exactly the rules that were shown", async () => {
  const changed = launch("notes", { why: { why: "changed" }, stands_out: [], asleep: said });
  await seen({ launches: [changed] });
  query<HTMLInputElement>("label.tick input").click();
  await settle();
  button("Allow to run").click();
  await settle();
  expect(calls).toEqual(["approve_launches launch-notes keep:r1"]);
});

test.each([
  ["Keep them for this", "keep"],
  ["Withdraw them", "withdraw"],
])("rules that sleep show what they would go on for: %s", async (label, word) => {
  const { now } = launch("notes");
  await seen({ asleep: [{ id: "s1", server: "notes", server_name: "Notes", now, rules: said }] });
  expect(spoken()).toContain("What Notes may do without asking was allowed in another place");
  expect(spoken()).toContain("weather-mcp");
  button(label).click();
  await settle();
  expect(calls).toEqual([`answer_asleep s1 ${word}`]);
  expect(spoken()).toContain("Nothing waits for your review.");
});

test("words of others are text in every review", async () => {
  const now = { ...ran, command_line: [hostile], program: hostile, cwd: hostile, env_file: hostile };
  const stands_out: StandsOut[] = [{ what: "unpinned", package: hostile }];
  const text_ = toolText({ title: hostile, description: hostile, input_schema: hostile, output_schema: hostile });
  const tools = [toolReview(hostile, { now: text_, before: toolText(), state: "changed" })];
  await seen({
    launches: [launch("a", { server_name: hostile, now, stands_out, before: contacted, why: { why: "changed" } })],
    tools: [toolsReview("x", { server_name: hostile, tools })],
    proposals: [{ id: "p", server: "x", server_name: hostile, patterns: [hostile], tools: [hostile] }],
  });
  expect(spoken()).toContain("onerror");
  expect(text()).not.toContain("\u202e");
  expect(document.querySelectorAll("main img, main script, main [style]")).toHaveLength(0);
});

test("fifty tools of one connector are listed folded, and the dangerous one is open", async () => {
  const many = Array.from({ length: 50 }, (_, index) =>
    toolReview(`tool_${index}`, { state: "changed", before: toolText({ description: "x" }) }),
  );
  await seen({
    tools: [toolsReview("pg", { tools: [...many, toolReview("bad", { state: "held", findings: [finding] })] })],
  });
  expect(document.querySelectorAll("[data-guided=tool-review]")).toHaveLength(51);
  expect(document.querySelectorAll("main pre")).toHaveLength(
    query("[data-guided=tool-review]").querySelectorAll("pre").length,
  );
});

test("the way to a review ends at its heading, and the navigation says how many wait", async () => {
  await open(toReview({ launches: [launch("a", { why: { why: "changed" } })], tools: [toolsReview("pg")] }));
  expect(query("nav").textContent).toContain("2 to look at");
  await go("#/review/pg");
  await frame();
  expect(focused().textContent).toContain("pg");
  expect(focused().tagName).toBe("H2");
});

test("what a connector's state asks for comes before what is held back of it", async () => {
  const made = toReview({ tools: [toolsReview("files")] });
  made.snapshot.connectors = [connector("files", { status: "error", action: "reconnect", error: "It ended." })];
  await open(made, "#/connectors");
  expect(spoken()).toContain("It ended.");
  expect(spoken()).not.toContain("of its tools wait");
  publish((snapshot) => ({ ...snapshot, connectors: [connector("files")] }));
  await settle();
  expect(spoken()).toContain("4 of its tools wait for your review.");
});

test("a connector of which tools are held back says so in the list, and leads to the review before anything else", async () => {
  const made = toReview({ tools: [toolsReview("files")] });
  made.tools["files"] = [tool("files", "query", {}, { state: "held" }), tool("files", "explain", {})];
  made.snapshot.connectors = [connector("files", { name: "Files", tools: 1 }), connector("other")];
  await open(made);
  expect(spoken()).toContain("4 of its tools wait for your review.");
  expect(spoken()).toContain("1 needs you");
  expect(query("[aria-label='Review: Files']").getAttribute("href")).toBe("#/review/files");
  await go("#/connectors/files");
  expect([...document.querySelectorAll("main .primary")].map(({ textContent }) => textContent)).toEqual(["Review"]);
  const order = [...document.querySelectorAll("main a.button")].map(({ textContent }) => textContent);
  expect(order.indexOf("Review")).toBeLessThan(order.indexOf("Try a tool"));
  await go("#/connectors/files/tools");
  const [held, free] = [...document.querySelectorAll<HTMLButtonElement>("main li [role=switch]")];
  expect([held?.getAttribute("aria-checked"), held?.disabled]).toEqual(["false", true]);
  expect(held?.title).toBe("new and blocked: it looks dangerous");
  expect([free?.getAttribute("aria-checked"), free?.disabled]).toEqual(["true", false]);
});

test("a connector that waits or is paused says so on its page and in its row, with the one thing to do", async () => {
  const made = world([
    connector("a", { status: "needs_review", action: "review" }),
    connector("b", { status: "paused", action: "resume", paused: { by: script } }),
  ]);
  await open(made);
  expect(query("[aria-label='Review: a']").getAttribute("href")).toBe("#/review/a");
  await go("#/connectors/a");
  expect(spoken()).toContain("Nothing has been started.");
  expect(query<HTMLAnchorElement>("main a.primary").getAttribute("href")).toBe("#/review/a");
  await go("#/connectors/b");
  expect(spoken()).toContain("python3 paused this");
  query("main section").querySelector("button")?.click();
  await settle();
  expect(calls).toEqual(["resume b"]);
});

test("a connector that waits while it is paused shows both, and each is ended by itself", async () => {
  const error = "It has to be looked at first.";
  const made = world([connector("a", { status: "needs_review", action: "review", error, paused: { by: script } })]);
  made.snapshot.reviews.launches = [launch("a", { why: { why: "changed" } })];
  await open(made);
  for (const part of [error, "python3 paused this"]) expect(query("main li").textContent).toContain(part);
  expect(query("[aria-label='Review: a']").getAttribute("href")).toBe("#/review/a");
  await go("#/connectors/a");
  expect(query<HTMLAnchorElement>("main a.primary").getAttribute("href")).toBe("#/review/a");
  button("Resume").focus();
  button("Resume").click();
  await settle();
  expect(calls).toEqual(["resume a"]);
  publish((snapshot) => ({
    ...snapshot,
    connectors: [connector("a", { status: "needs_review", action: "review", error })],
  }));
  await frame();
  expect(spoken()).not.toContain("paused this");
  expect(focused().textContent).toContain("Needs your review");
});

test("a pause of everything, and decisions that cannot be relied on, are told calmly above the list", async () => {
  const made = world(ordinary);
  made.snapshot.trust.paused = true;
  made.snapshot.trust.standing = { state: "broken", message: "Earlier decisions are missing; you are asked again." };
  await open(made);
  expect(spoken()).toContain("Earlier decisions are missing; you are asked again.");
  expect(document.querySelectorAll("[role=alert] .lines, .banner.bad")).toHaveLength(0);
  query<HTMLButtonElement>("main .banner button").click();
  await settle();
  expect(calls).toEqual(["pause_all false"]);
  expect(spoken()).not.toContain("Everything is paused");
});

test("everything can be paused and resumed in the window, by one word, and a question that this ends is told", async () => {
  const made = world([connector("a")]);
  made.snapshot.approvals = [call("q1"), call("q2")];
  await open(made, "#/connectors");
  button("Pause everything").click();
  await settle();
  publish((snapshot) => ({
    ...snapshot,
    approvals: snapshot.approvals.slice(1),
    connectors: [connector("a", { status: "paused", action: "resume", error: "It is paused.", paused: { by: null } })],
  }));
  await settle();
  expect(spoken()).toContain("1 question that waited was ended; what it asked for was not done.");
  expect(document.querySelectorAll("main li button:not([role=switch]), main li a.button")).toHaveLength(0);
  expect(query("main li").textContent).not.toContain("It is paused.");
  await go("#/settings");
  expect(
    [...document.querySelectorAll("button")].filter(({ textContent }) => textContent?.includes("Resume")),
  ).toHaveLength(2);
  query<HTMLButtonElement>("main .card button").click();
  await settle();
  expect(calls).toEqual(["pause_all true", "pause_all false"]);
  await go("#/connectors");
  expect(spoken()).not.toContain("that waited was ended");
});

test("a difference is what was taken away and what was added, and the sides are the texts", () => {
  const [before, now] = ["Run a read-only query.", "Run a query now."];
  const parts = wordDiff(before, now);
  const read = (side: "gone" | "new") =>
    sideOf(parts, side)
      .map(({ text }) => text)
      .join("");
  expect([read("gone"), read("new")]).toEqual([before, now]);
  expect(parts.filter(({ kind }) => kind !== "same").map(({ text }) => text.trim())).toEqual(["read-only", "now"]);
  expect(wordDiff("", "")).toEqual([]);
  expect(lineDiff("a\nb\n", "a\nc\n")).toEqual([
    { kind: "same", text: "a\n" },
    { kind: "gone", text: "b\n" },
    { kind: "new", text: "c\n" },
  ]);
  const long = (word: string) => `${word} `.repeat(5_000);
  expect(wordDiff(long("a"), long("b")).map(({ kind }) => kind)).toEqual(["gone", "new", "same"]);
});

test("everything that stands out has its own words", () => {
  const all: StandsOut[] = [
    { what: "inline_code", program: "x" },
    { what: "other_rights", program: "x" },
    { what: "wide_folder", argument: "x" },
    { what: "loader_variable", name: "x" },
    { what: "unpinned", package: "x" },
    { what: "downloads", runner: "x" },
    { what: "missing_pkce" },
    { what: "not_encrypted" },
    { what: "not_found", program: "x" },
  ];
  expect(new Set(all.map(standsOutWords)).size).toBe(all.length);
});
