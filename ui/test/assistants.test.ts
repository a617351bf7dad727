import { expect, test } from "vitest";

import type { PairingView, TrustView } from "../src/lib/bridge";
import { calls, publish, type World } from "./rpc-fixture";
import { button, open, query, settle, text, write } from "./window";
import { client, ordinary, script, world } from "./worlds";

const hostile = '<img src=x onerror="document.title=1">\u202e';
const place = "#/assistants";

function trusting(over: Partial<TrustView>, more: Partial<World> = {}): World {
  const made = world(ordinary, more);
  made.snapshot.trust = { ...made.snapshot.trust, ...over };
  return made;
}

const spoken = () => text().replace(/\s+/g, " ");
const labelled = (words: string) => {
  const label = [...document.querySelectorAll("label")].find((one) => one.textContent?.includes(words));
  return label?.querySelector("input") as HTMLInputElement;
};

function asked(over: Partial<NonNullable<PairingView["request"]>> = {}): PairingView {
  const request = { id: "p1", name: "Cursor", program: script.program, wrong_codes: 0, ...over };
  return { open_until: Date.now() + 100_000, request };
}

test("pairing is opened by a click, counts down and can be called off", async () => {
  await open(trusting({}), place);
  button("Pair an assistant…").click();
  await settle();
  expect(calls).toEqual([]);
  expect(spoken()).toContain("You then have two minutes");
  button("Start the two minutes").click();
  await settle();
  expect(spoken()).toContain("Waiting for an assistant");
  expect(spoken()).toContain("2:00 left");
  await settle(3_000);
  expect(spoken()).toContain("1:57 left");
  button("Cancel").click();
  await settle();
  expect(calls).toEqual(["open_pairing", "close_pairing"]);
  expect(spoken()).not.toContain("Waiting for an assistant");
});

test("whoever asks to be paired is shown with its path and can be turned away, and pairing stays open", async () => {
  await open(trusting({ pairing: asked() }), place);
  expect(text()).toContain(asked().request!.program!.path!);
  button("Turn it away").click();
  await settle();
  expect(calls).toEqual(["turn_away p1"]);
  expect(text()).toContain("Waiting for an assistant");
});

test("a person is told which address an assistant needs, and a developer the exact requests", async () => {
  await open(trusting({}), place);
  expect(spoken()).toContain("http://127.0.0.1:7771/mcp/tools");
  expect(spoken()).toContain("http://127.0.0.1:7771/mcp/clients/pair");
  expect(query<HTMLDetailsElement>("main details").open).toBe(false);
  expect(query("main details").textContent).toContain('{"pairing_id": "…"}');
  await open(trusting({ api_mode: "token" }), place);
  expect(spoken()).toContain("has to be paired first");
});

test("the one that asks shows with its program, and is paired with its code and never with changes by default", async () => {
  await open(trusting({ pairing: asked() }), place);
  expect(spoken()).toContain("An assistant that calls itself “Cursor” wants to be paired");
  expect(spoken()).toContain("/usr/bin/python3.11");
  expect(spoken()).toContain("/home/ada/bots/helper.py");
  expect(button("Pair").disabled).toBe(true);
  await write(query("#pairing-code"), "123 456");
  expect(labelled("ask you for changes").checked).toBe(false);
  button("Pair").click();
  await settle();
  expect(calls).toEqual([
    'answer_pairing p1 {"code":"123456","scopes":["read","call"],"servers":null,"expiresAt":null,"asksItself":false}',
  ]);
});

test("a wrong code is said with the tries that are left, and what was chosen stays", async () => {
  await open(trusting({ pairing: asked() }), place);
  labelled("only some connectors").click();
  await settle();
  labelled("Linear").click();
  await settle();
  publish((snapshot) => ({ ...snapshot, trust: { ...snapshot.trust, pairing: asked({ wrong_codes: 1 }) } }));
  await settle();
  expect(spoken()).toContain("That was not its code. 2 tries are left.");
  await write(query("#pairing-code"), "654321");
  button("Pair").click();
  await settle();
  expect(calls[0]).toContain('"servers":["linear"]');
});

test("another one that asks begins with an empty code", async () => {
  await open(trusting({ pairing: asked() }), place);
  await write(query("#pairing-code"), "123456");
  publish((snapshot) => ({ ...snapshot, trust: { ...snapshot.trust, pairing: asked({ id: "p2", name: "Other" }) } }));
  await settle();
  expect(query<HTMLInputElement>("#pairing-code").value).toBe("");
  expect(button("Pair").disabled).toBe(true);
});

test("after the two minutes nothing can be paired any more", async () => {
  await open(trusting({ pairing: { ...asked(), open_until: Date.now() + 2_000 } }), place);
  await write(query("#pairing-code"), "123456");
  await settle(3_000);
  expect(spoken()).toContain("The two minutes are over.");
  expect(button("Pair").disabled).toBe(true);
});

test("paired assistants say what they may do and since when they were not used, and that it is only a filter", async () => {
  const clients = [
    client("c1"),
    client("c2", { name: "Cursor", servers: ["linear"], scopes: ["read"], expires_at: Date.now() + 86_400_000 * 3 }),
  ];
  await open(trusting({}, { clients }), place);
  expect(spoken()).toContain("used 2 minutes ago");
  expect(spoken()).toContain("see your tools · use your tools · all connectors");
  expect(spoken()).toContain("see your tools · only Linear");
  expect(spoken()).toContain("these limits lock nothing");
  await open(trusting({ api_mode: "token" }, { clients }), place);
  expect(spoken()).not.toContain("a filter");
});

test("an assistant is told to ask itself, is changed, and is removed after a question", async () => {
  await open(trusting({}, { clients: [client("c1")] }), place);
  button("Don’t ask me here about Claude Code: it asks me itself").click();
  await settle(2_000);
  button("Change…: Claude Code").click();
  await settle();
  labelled("ask you for changes").click();
  await settle();
  button("Save").click();
  await settle();
  button("Remove: Claude Code").click();
  await settle();
  expect(calls).toEqual([
    'change_client c1 {"asks_itself":true}',
    'change_client c1 {"scopes":["read","call","manage"],"servers":null,"expires_at":null}',
  ]);
  button("Remove").click();
  await settle();
  expect(calls.at(-1)).toBe("revoke_client c1");
  expect(spoken()).toContain("No assistant is paired yet.");
});

test("whoever is not asked about here is named with the rules, and nothing else is promised there", async () => {
  const askers = [{ path: "/usr/bin/node", script: "/opt/agent.js" }];
  const clients = [
    client("c1", { asks_itself: true }),
    client("c2", { name: "Cursor" }),
    client("c3", { name: "Old", asks_itself: true, expires_at: 1 }),
  ];
  await open(trusting({}, { clients, askers }), "#/approvals");
  expect(spoken()).toContain("Claude Code is trusted to ask you itself; its calls are not asked about here.");
  expect(spoken()).toContain("/opt/agent.js is trusted to ask you itself; its calls are not asked about here.");
  expect(spoken()).not.toMatch(/(Cursor|Old) is trusted/);
  expect(spoken()).not.toContain("Nothing happens before you answer.");
  expect(query("main li a").getAttribute("href")).toBe("#/assistants");

  await open(trusting({ walk_in: "allow" }), "#/approvals");
  expect(spoken()).toContain("Programs that are not paired may use tools; their calls are not asked about here.");
});

test("where everybody is asked about, nothing happens before an answer, and that is said", async () => {
  await open(trusting({ api_mode: "token", walk_in: "allow" }, { clients: [client("c1")] }), "#/approvals");
  expect(spoken()).toContain("Nothing happens before you answer.");
  expect(spoken()).not.toContain("not asked about here");
});

test.each([
  [{ api_mode: "open", walk_in: "ask" } as const, "can still ask to use your tools without being paired"],
  [{ api_mode: "open", walk_in: "allow" } as const, "can still use your tools without being paired or asked about"],
  [{ api_mode: "token", walk_in: "ask" } as const, null],
])("whoever removes an assistant is told what its program can do then (%o)", async (over, told) => {
  await open(trusting(over, { clients: [client("c1")] }), place);
  button("Remove: Claude Code").click();
  await settle();
  const said = query("dialog").textContent ?? "";
  expect(said).toContain("It can no longer connect as this assistant.");
  if (told === null) expect(said).not.toContain("can still");
  else expect(said).toContain(told);
});

test("who may connect is chosen in words, and with nobody paired it is said", async () => {
  await open(trusting({}), place);
  labelled("Only assistants that are paired").click();
  await settle();
  expect(calls).toEqual([]);
  expect(query("dialog").textContent).toContain("none gets an answer until you pair one");
  button("Only paired ones").click();
  await settle();
  expect(calls).toEqual(["set_api_mode token"]);
  expect(spoken()).toContain("No assistant is paired yet, so none can connect at present.");
  expect(spoken()).not.toContain("When a program that is not paired");
});

test("letting every program use tools is asked about, and no leaves it as it was", async () => {
  await open(trusting({}), place);
  labelled("Allow it").click();
  await settle();
  expect(calls).toEqual([]);
  button("Cancel").click();
  await settle();
  expect(labelled("Ask me").checked).toBe(true);
  labelled("Allow it").click();
  await settle();
  button("Allow without asking").click();
  await settle();
  expect(calls).toEqual(["set_walk_in allow"]);
});

test("programs that ask themselves are listed, added and removed", async () => {
  await open(trusting({}, { askers: [{ path: "/usr/bin/node", script: "/opt/agent.js" }] }), place);
  expect(spoken()).toContain("/opt/agent.js");
  await write(query("#asker-path"), "/usr/bin/other");
  query("#asker-path").closest("form")?.requestSubmit();
  await settle();
  button("Remove: /opt/agent.js").click();
  await settle();
  expect(calls).toEqual(["set_asker /usr/bin/other  true", "set_asker /usr/bin/node /opt/agent.js false"]);
});

test("web pages that may use connectors are listed, allowed and removed", async () => {
  await open(trusting({}, { pages: ["https://mine.example"] }), place);
  expect(spoken()).toContain("https://mine.example");
  await write(query("#page-address"), "https://other.example.com");
  query("#page-address").closest("form")?.requestSubmit();
  await settle();
  button("Remove: https://mine.example").click();
  await settle();
  expect(calls).toEqual(["set_page https://other.example.com true", "set_page https://mine.example false"]);
  expect(spoken()).toContain("https://other.example.com");
  expect(spoken()).not.toContain("https://mine.example");
});

for (const [field, said] of [
  ["#asker-path", "/usr/bin/other"],
  ["#page-address", "https://other.example.com"],
] as const) {
  test(`what a list does not take stays in ${field}, with the reason, and what it takes does not`, async () => {
    const refusal = { code: "not_saved" as const, error: "The disk is full." };
    const made = trusting({}, { refusal });
    await open(made, place);
    await write(query(field), said);
    query(field).closest("form")?.requestSubmit();
    await settle();
    expect(spoken()).toContain("The disk is full.");
    expect(query<HTMLInputElement>(field).value).toBe(said);
    made.refusal = null;
    query(field).closest("form")?.requestSubmit();
    await settle();
    expect(spoken()).not.toContain("The disk is full.");
    expect(query<HTMLInputElement>(field).value).toBe("");
    button(`Remove: ${said}`);
  });
}

test("a refusal is told, and the mark goes back", async () => {
  const refusal = { code: "not_saved" as const, error: "The disk is full." };
  await open(trusting({}, { refusal }), place);
  labelled("Only assistants that are paired").click();
  await settle();
  button("Only paired ones").click();
  await settle();
  expect(spoken()).toContain("The disk is full.");
  button("Cancel").click();
  await settle();
  expect(labelled("Every program that you run").checked).toBe(true);
});

test("names of assistants and programs are text", async () => {
  const program = { name: hostile, path: hostile, script: hostile, pid: 1 };
  const pairing = asked({ name: hostile, program });
  const clients = [client("c1", { name: hostile, program, servers: [hostile] })];
  await open(trusting({ pairing }, { clients, askers: [{ path: hostile, script: hostile }] }), place);
  expect(text()).toContain("onerror");
  expect(text()).not.toContain("\u202e");
  expect(document.querySelectorAll("main img, main script, main [style]")).toHaveLength(0);
});
