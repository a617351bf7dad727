/** Every card that takes an answer, by what is true of all of them. */
import { expect, test } from "vitest";

import type { Reviews, Snapshot } from "../src/lib/bridge";
import { wakeMs } from "../src/lib/question";
import { calls, publish } from "./rpc-fixture";
import { button, open, settle } from "./window";
import {
  call,
  contacted,
  finding,
  launch,
  manage,
  page,
  promptReview,
  question,
  ran,
  toolReview,
  toolsReview,
  world,
} from "./worlds";

type Case = {
  /** Where it is shown, with something above it. */
  place: string;
  shown: Partial<Snapshot>;
  /** One of its answers, which no other card has. */
  answer: string;
  /** What is there when it has moved up, or says something else. */
  moved: Partial<Snapshot>;
};

const asks = (answer: string, above: Snapshot["approvals"], itself: Snapshot["approvals"]): Case => ({
  place: "#/approvals",
  shown: { approvals: [...above, ...itself] },
  answer,
  moved: { approvals: [...above.slice(1), ...itself] },
});

const reviews = (over: Partial<Reviews>): Partial<Snapshot> => ({
  reviews: { launches: [], tools: [], left: [], proposals: [], asleep: [], ...over },
});

const waits = (answer: string, shown: Partial<Reviews>, moved: Partial<Reviews>): Case => ({
  place: "#/review",
  shown: reviews(shown),
  answer,
  moved: reviews(moved),
});

const remote = launch("remote", { now: contacted, why: { why: "changed" } });
const local = launch("local", { why: { why: "changed" } });
const flagged = toolReview("query", { findings: [finding] });
const proposals = [{ id: "p", server: "files", server_name: "Files", patterns: ["*"], tools: ["list"] }];
const rules = [{ rule: "r1", sentence: "Any program on this computer may use read_file of Notes." }];
const asleep = [{ id: "s", server: "notes", server_name: "Notes", now: ran, rules }];
const says = (version: string) => [
  toolsReview("files", { tools: [], instructions: { version, before: null, now: version, findings: [] } }),
];

const cases: Record<string, Case> = {
  CallQuestion: asks("Allow once", [page("q0", "https://a.example/x", "a.example")], [call("q1")]),
  // Of three, the last: there is no need to be the first one to have moved.
  Elicitation: asks("Send", [call("q0"), page("q1", "https://a.example/x", "a.example")], [question("q2")]),
  ManageQuestion: asks(
    "Keep the present key",
    [call("q0")],
    [manage("q1", { change: "set_secret", name: null, replaces: true, goes_to: "https://a.example" })],
  ),
  QuestionGroup: asks("Deny all", [question("q0")], [call("q1"), call("q2")]),
  FirstStart: waits(
    "Allow all 2",
    { launches: [launch("a"), launch("b")] },
    { launches: [launch("a"), { ...launch("b"), id: "launch-b-2" }] },
  ),
  LaunchCard: waits("Allow to run", { launches: [remote, local] }, { launches: [local] }),
  ToolReviewCard: waits(
    "Approve",
    { tools: [toolsReview("files", { tools: [flagged, toolReview("list")] })] },
    { tools: [toolsReview("files", { tools: [toolReview("list")] })] },
  ),
  PromptReviewCard: waits(
    "Approve this version",
    { tools: [toolsReview("files", { tools: [], prompts: [promptReview("query"), promptReview("list")] })] },
    { tools: [toolsReview("files", { tools: [], prompts: [promptReview("list")] })] },
  ),
  InstructionsCard: waits("Approve", { tools: says("One.") }, { tools: says("Two.") }),
  ProposalCard: waits("Allow without asking", { launches: [remote], proposals }, { proposals }),
  SleepingRulesCard: waits("Keep them for this", { launches: [remote], asleep }, { asleep }),
};

/** The text of each component, by its name. */
const sources = Object.entries(
  import.meta.glob<string>("../src/**/*.svelte", { query: "?raw", import: "default", eager: true }),
).map(([path, source]) => ({ name: path.replace(/^.*\/(\w+)\.svelte$/, "$1"), source }));

const namesOf = (says: RegExp) =>
  sources
    .filter(({ source }) => says.test(source))
    .map(({ name }) => name)
    .sort();

test("every component that takes answers is tested below", () => {
  expect(namesOf(/new Answering\(/)).toEqual(Object.keys(cases).sort());
});

test("no component gives an answer past what keeps it asleep", () => {
  const answers = namesOf(
    /rpc\.(approve\w+|keep\w*(?:Blocked|Withheld)|answer(?!Pairing)\w+)\(|\b(answerCall|alwaysAllow)\(/,
  );
  // A dialog that opens by the person's own click.
  const asked = ["ApproveTools"];
  expect(answers.filter((name) => !asked.includes(name) && !(name in cases))).toEqual([]);
});

for (const [name, { place, shown, answer, moved }] of Object.entries(cases)) {
  test(`${name} takes no answer before it could be read, nor right after it moved or changed`, async () => {
    const made = world([]);
    Object.assign(made.snapshot, shown);
    await open(made, place);
    const press = async () => {
      button(answer).click();
      await settle();
    };
    await press();
    await settle(wakeMs - 10);
    await press();
    await settle(10);
    expect(button(answer).getAttribute("aria-disabled")).toBe("false");

    publish((snapshot) => ({ ...snapshot, ...moved }));
    await settle();
    await press();
    await settle(wakeMs - 10);
    await press();
    expect(calls).toEqual([]);

    // News that are not about it do not put it to sleep.
    publish((snapshot) => structuredClone(snapshot));
    await settle(10);
    await press();
    expect(calls).not.toEqual([]);
  });
}
