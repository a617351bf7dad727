import { expect, test } from "vitest";

import type { ChangeQuestion } from "../src/lib/bridge";
import { changeWords } from "../src/lib/change";
import { wakeMs } from "../src/lib/question";
import { calls } from "./rpc-fixture";
import { button, open, query, settle } from "./window";
import { launch, manage, waiting } from "./worlds";

const place = "#/approvals";

const card = () => query("section[data-guided=question]");
const words = () => card().textContent?.replace(/\s+/g, " ") ?? "";
const told = () => query("[role=status].told").textContent?.replace(/\s+/g, " ").trim() ?? "";

test("the answer to a change is told", async () => {
  await open(waiting(manage("q1", { change: "enable" })), place);
  await settle(wakeMs);
  document.querySelectorAll<HTMLButtonElement>("section .answers button")[1]!.click();
  await settle();
  expect(told()).toContain("Denied what python3 asked about Weather.");
});

test("a program that wishes for changes can be told to stop, and a change has a day anyway", async () => {
  await open(waiting(manage("q1", { change: "enable" })), place);
  await settle(wakeMs);
  expect(words()).not.toContain("I need longer");
  button("Stop this program asking for an hour").click();
  await settle();
  expect(calls).toEqual(["stop_asking q1"]);
});

test("a program that wants to add a connector is shown with all that would run", async () => {
  await open(waiting(manage("q1", { change: "add", launch: launch("weather") })), place);
  await settle(wakeMs);
  for (const part of [
    "python3 wants to add a connector: Weather",
    "npx -y weather-mcp --units metric",
    "your key WEATHER_KEY",
    "your variable PATH, now: /usr/bin:/bin",
    "No fixed version of weather-mcp",
  ]) {
    expect(words()).toContain(part);
  }
  button("Add and allow to run").click();
  await settle();
  expect(calls).toEqual(["answer_approval q1 approve "]);
});

test("a key says that it replaces the present one, and yes and no say what they do", async () => {
  const secret: ChangeQuestion = { change: "set_secret", name: null, replaces: true, goes_to: "https://a.example" };
  await open(waiting(manage("q1", secret)), place);
  await settle(wakeMs);
  expect(words()).toContain("This one replaces the present one");
  expect(words()).toContain("https://a.example");
  button("Keep the present key").click();
  await settle();
  expect(calls).toEqual(["answer_approval q1 deny "]);
});

test("no two changes share a sentence, and no yes is its no", () => {
  const changes: ChangeQuestion[] = [
    { change: "add", launch: launch("x") },
    { change: "enable" },
    { change: "disable" },
    { change: "remove" },
    { change: "reconnect" },
    { change: "auto_approve", patterns: ["*"], tools: ["read_file"] },
    { change: "set_secret", name: "A", replaces: false, goes_to: "x" },
    { change: "forget_secret", name: "A" },
    { change: "sign_in" },
    { change: "sign_out" },
  ];
  const said = changes.map((change) => changeWords(change, "Who", "It"));
  expect(new Set(said.map(({ title }) => title)).size).toBe(changes.length);
  for (const { yes, no } of said) expect(yes).not.toBe(no);
});
