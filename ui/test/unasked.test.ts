import { expect, test } from "vitest";

import type { ToolView } from "../src/lib/bridge";
import { store } from "../src/lib/store.svelte";
import { answerOf, choosable, lookUps, matches, rulesOf } from "../src/lib/unasked";
import { calls, type World } from "./rpc-fixture";
import { button, go, open, query, settle, text } from "./window";
import { connector, fileTools, finding, rule, tool, world } from "./worlds";

const reads = { read_only: true, destructive: null, idempotent: null, open_world: null };
const tools: ToolView[] = [
  tool("a", "find", { type: "object" }, { hints: reads }),
  tool("a", "list", { type: "object" }, { hints: reads, findings: [finding] }),
  tool("a", "write", { type: "object" }),
  tool("a", "later", { type: "object" }, { hints: reads, state: "pending" }),
  tool("a", "off", { type: "object" }, { hints: reads, enabled: false }),
];
const spoken = () => text().replace(/\s+/g, " ");

async function added(over: Partial<World> = {}): Promise<void> {
  store.choosing = [];
  await open(world([connector("a", { tools: 3 })], { tools: { a: tools }, ...over }), "#/connectors/a");
  store.wantsChoice("a");
  await settle();
}

test("only what says that it reads and looks harmless counts as looking up", () => {
  expect(lookUps(tools).map(({ name }) => name)).toEqual(["find"]);
  expect(choosable(tools).map(({ name }) => name)).toEqual(["find", "list", "write"]);
});

test("adding ends with a choice, and without another one nothing is allowed", async () => {
  await added();
  expect(spoken()).toContain("What may assistants do without asking you?");
  expect(query<HTMLInputElement>("main input[type=radio]:checked").value).toBe("nothing");
  // One thing to do at a time.
  expect([...document.querySelectorAll("main .primary")].map(({ textContent }) => textContent?.trim())).toEqual([
    "Ask me each time",
  ]);
  button("Ask me each time").click();
  await settle();
  expect(calls).toEqual(["choose a nothing"]);
  expect(spoken()).not.toContain("What may assistants do");
  expect(spoken()).toContain("As you chose, you are asked each time before an assistant uses one of its tools.");
  expect(spoken()).not.toContain("from now on");
});

test("looking up is offered with its tools, and chosen ones are named", async () => {
  await added();
  expect(spoken()).toContain("Look things up (1 tool)");
  query<HTMLInputElement>("input[value=these]").click();
  await settle();
  expect(button("Allow these without asking").disabled).toBe(true);
  const boxes = [...document.querySelectorAll<HTMLInputElement>(".tools input")];
  expect(boxes.map((box) => box.checked)).toEqual([false, false, false]);
  boxes[2]?.click();
  await settle();
  button("Allow these without asking").click();
  await settle();
  expect(calls).toEqual(["choose a these write"]);
  expect(spoken()).toContain("As you chose, assistants may use 1 of its 3 tools without asking you.");
});

test("a connector that was there before asks nothing", async () => {
  store.choosing = [];
  await open(world([connector("a")], { tools: { a: tools } }), "#/connectors/a");
  expect(spoken()).not.toContain("What may assistants do");
});

test("on the first run the built-in files' reading tools are marked, until something was chosen", async () => {
  const files = fileTools.map((one) => (one.name === "read_text_file" ? { ...one, hints: reads } : one));
  const made = world([connector("filesystem")], { tools: { filesystem: files } });
  made.snapshot.config.is_default = true;
  await open(made);
  expect(query<HTMLInputElement>("main input[type=radio]:checked").value).toBe("look_up");
  button("Allow these without asking").click();
  await settle();
  expect(calls).toEqual(["choose filesystem these list_directory read_text_file"]);
  expect(spoken()).not.toContain("What may assistants do");
  made.rules = [rule("r", { server: "filesystem", origin: "choice" })];
  await open(made);
  expect(spoken()).not.toContain("What may assistants do");
});

test("what came allowed with the app is said on the first run, and marked among the rules with its tools", async () => {
  const bound = ["list_directory", "read_text_file"].map((tool) => ({ tool, fingerprint: "f" }));
  const rules = [rule("r", { server: "filesystem", origin: "built_in", bound })];
  const made = world([connector("filesystem", { name: "Files" })], { tools: { filesystem: fileTools }, rules });
  made.snapshot.config.is_default = true;
  await open(made);
  expect(spoken()).toContain("Assistants may look into that folder without asking you.");
  expect(spoken()).not.toContain("What may assistants do");
  query<HTMLAnchorElement>("main p a[href='#/approvals']");
  await go("#/approvals");
  expect(query("main li").textContent).toContain("came with the app");
  expect([...document.querySelectorAll("main li details li")].map(({ textContent }) => textContent)).toEqual([
    "list_directory",
    "read_text_file",
  ]);
});

test("each tool says how it stands, what was found in it, and which rule is about it", async () => {
  const held = tool("a", "list", { type: "object" }, { state: "held", findings: [finding] });
  const bound = [{ tool: "list", fingerprint: "f" }];
  const rules = [
    rule("r1", { server: "a", bound }, { sentence: "Claude may use list." }),
    rule("r2", { server: "a", effect: "deny", patterns: ["li*"] }, { sentence: "Cursor may never use li*." }),
    rule("r3", { server: "b", bound }, { sentence: "Another one." }),
  ];
  await open(world([connector("a")], { tools: { a: [held] }, rules }), "#/connectors/a/tools/list");
  expect(spoken()).toContain("new and blocked: it looks dangerous");
  expect(spoken()).toContain("It tells the assistant to read a private key");
  expect(spoken()).toContain("Cursor may never use li*.Claude may use list.");
  expect(spoken()).not.toContain("Another one.");
  expect(query("section.tool a[href='#/review/a']").textContent).toBe("Review");
  await go("#/connectors");
});

test("patterns mean any run of characters and single ones, and rules that deny come first", () => {
  const fits = (pattern: string) => matches(pattern, "read_file");
  expect(["*", "read_*", "r?ad_*e", "read_file", "*file*"].every(fits)).toBe(true);
  expect(["read", "?ead", "read_file?", ""].some(fits)).toBe(false);
  const about = rulesOf([rule("a"), rule("b", { effect: "deny" })], "files", "write_file");
  expect(about.map(({ rule }) => rule.id)).toEqual(["b"]);
});

test("a yes to what looks things up names the tools that were shown, and no other", () => {
  expect(answerOf("look_up", ["list", "read"], ["write"])).toEqual(["these", ["list", "read"]]);
  expect(answerOf("these", ["list", "read"], ["write"])).toEqual(["these", ["write"]]);
  expect(answerOf("nothing", ["list"], ["write"])).toEqual(["nothing", []]);
});
