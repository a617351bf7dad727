/** A changed entry, and what the window tells of it before it is saved. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { open, query, text, write } from "./window";
import { ordinary, world } from "./worlds";

const program = { command: "thing", args: ["--fast"] };
const server = { url: "https://a.example/mcp" };

/** Of each member that decides what is run or contacted: two entries that differ in it alone, and what tells the second. */
const decides: Record<string, { from: object; to: object; told: string }> = {
  transport: { from: server, to: { ...server, transport: "sse" }, told: "Speaks in the older way" },
  command: { from: program, to: { ...program, command: "other" }, told: "Will run other --fast" },
  args: { from: program, to: { ...program, args: ["--slow"] }, told: "Will run thing --slow" },
  env: { from: program, to: { ...program, env: { A: "1" } }, told: "With the settings A = 1" },
  cwd: { from: program, to: { ...program, cwd: "~/place" }, told: "In the folder ~/place" },
  envFile: { from: program, to: { ...program, envFile: "~/.keys" }, told: "Reads settings from ~/.keys" },
  url: { from: server, to: { url: "https://b.example/mcp" }, told: "Will contact https://b.example/mcp" },
  headers: { from: server, to: { ...server, headers: { X: "1" } }, told: "Sends along X = 1" },
  auth: { from: server, to: { ...server, auth: "token" }, told: "Signs in with a key" },
  oauth: {
    from: server,
    to: { ...server, oauth: { clientId: "c1", scopes: ["read", "write"], clientSecret: "SENTINEL" } },
    told: "Sign-in setting clientId = c1 scopes = read write clientSecret = ••••••",
  },
};

/** What changes looks, limits or what assistants may use. */
const decidesNot = ["enabled", "name", "description", "autoApprove", "disabledTools", "timeouts", "start"];

const told = () =>
  [...document.querySelectorAll("form dl, form .consent")]
    .map((one) => one.innerHTML.replace(/<[^>]*>/g, " "))
    .join(" ")
    .replace(/\s+/g, " ");

async function change(from: object, to: object): Promise<void> {
  await open(world(ordinary, { entries: { files: JSON.stringify(from) } }), "#/connectors/files/settings");
  await write(query("textarea"), JSON.stringify(to));
}

test("every member of an entry is one of these", () => {
  const source = readFileSync("../bridge/src/config/validate/mod.rs", "utf8");
  const members = /const MEMBERS: \[[^\]]*\] = \[([^\]]*)\]/.exec(source)?.[1] ?? "";
  const names = [...members.matchAll(/"(\w+)"/g)].map(([, name]) => name);
  expect([...Object.keys(decides), ...decidesNot].sort()).toEqual(names.sort());
});

test.each(Object.entries(decides))(
  "a change of %s is told before it is saved, until it is taken back",
  async (_, one) => {
    await change(one.from, one.to);
    expect(told()).toContain(one.told);
    expect(told()).not.toContain("SENTINEL");
    await write(query("textarea"), JSON.stringify(one.from));
    expect(told()).toBe("");
  },
);

test.each(Object.entries(decides))("taking a change of %s away again is told too", async (_, one) => {
  await change(one.to, one.from);
  expect(told()).not.toBe("");
  expect(told()).not.toContain(one.told);
});

test.each(decidesNot)("a change of %s alone needs no second look", async (name) => {
  await change(program, { ...program, [name]: "else" });
  expect(told()).toBe("");
  expect(text()).toContain("Save");
});

test("a way of signing in that is left to the server is told as that", async () => {
  await change({ ...server, auth: "token" }, server);
  expect(told()).toContain("Signs in when the server asks for it");
});
