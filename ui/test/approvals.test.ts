import { expect, test } from "vitest";

import { wakeMs, withDefaults } from "../src/lib/question";
import { calls, publish } from "./rpc-fixture";
import { button, focused, frame, go, open, query, settle, text, write } from "./window";
import { asking, form, ordinary, page, question, world } from "./worlds";

const hostile = '<img src=x onerror="document.title=1">\u202e';

function waiting(...approvals: ReturnType<typeof question>[]) {
  const made = world(ordinary);
  made.snapshot.approvals = approvals;
  return made;
}

test("a question shows above the list and on its own screen, and says who asks", async () => {
  await open(waiting(question("q1"), page("q2", "https://a.example/x", "a.example")));
  expect(text()).toContain("A question from Postgres (staging) (not from Neuron Connect)");
  expect(text()).toContain("1 more waits");
  expect(query("nav").textContent).toContain("2 wait");
  await go("#/approvals");
  expect(document.querySelectorAll("blockquote")).toHaveLength(2);
  await go("#/add");
  expect(document.querySelectorAll("blockquote")).toHaveLength(0);
  expect(text()).toContain("Postgres (staging) asks you something");
});

test("no answer works before the question could be read, and again after it changed", async () => {
  await open(waiting(question("q1")));
  for (const name of ["Send", "Decline", "I need longer"]) button(name).click();
  await settle(wakeMs - 10);
  button("Send").click();
  await settle();
  expect(calls).toEqual([]);
  await settle(20);
  publish((snapshot) => ({ ...snapshot, approvals: [{ ...question("q2"), asked_at: 1 }] }));
  await settle();
  button("Send").click();
  await settle();
  expect(calls).toEqual([]);
  await settle(wakeMs);
  button("Send").click();
  await settle();
  expect(calls).toEqual(['answer_approval q2 approve {"table":"users_old","limit":20}']);
});

test("more time leaves what was written", async () => {
  await open(waiting(question("q1")));
  await settle(wakeMs);
  await write(query("#question-q1-1"), "7");
  button("I need longer").click();
  await settle();
  publish((snapshot) => ({ ...snapshot, approvals: [question("q1", { expires_at: Date.now() + 300_000 })] }));
  await settle();
  expect(query<HTMLInputElement>("#question-q1-1").value).toBe("7");
  button("Send").click();
  await settle();
  expect(calls).toEqual(["extend_approval q1", 'answer_approval q1 approve {"table":"users_old","limit":7}']);
});

test("Enter in a field answers nothing, and no button is the default one", async () => {
  await open(waiting(question("q1")));
  await settle(wakeMs);
  query<HTMLFormElement>("form").requestSubmit();
  await settle();
  expect(calls).toEqual([]);
  expect(
    [...document.querySelectorAll<HTMLButtonElement>("main section button")].map(({ type }) => type),
  ).not.toContain("submit");
  expect(document.querySelectorAll("main section:has(blockquote) .primary")).toHaveLength(0);
});

test("what is missing is told and nothing is sent", async () => {
  await open(waiting(asking("q1", { ...form, defaults: {} })));
  await settle(wakeMs);
  button("Send").click();
  await settle();
  expect(text()).toContain("This is required.");
  expect(calls).toEqual([]);
  button("Decline").click();
  await settle();
  expect(calls).toEqual(["answer_approval q1 deny "]);
});

test("a page is opened by a click alone, and only then can it be done", async () => {
  await open(waiting(page("q1", "https://xn--pple-43d.com/x", "xn--pple-43d.com", "Look twice.")));
  await settle(wakeMs);
  expect(calls).toEqual([]);
  expect(query("pre").textContent).toBe("https://xn--pple-43d.com/x");
  expect(query("pre strong").textContent).toBe("xn--pple-43d.com");
  expect(text()).toContain("Look twice.");
  expect(() => button("Done")).toThrow();
  expect(document.querySelectorAll("a[href^=http]")).toHaveLength(0);
  button("Open this page").click();
  await settle();
  button("Done").click();
  await settle();
  expect(calls).toEqual(["open_approval_url q1", "answer_approval q1 approve "]);
});

test("an upstream's words are text, and what they hide is shown", async () => {
  const asks = {
    mode: "form" as const,
    message: hostile,
    schema: {
      type: "object",
      properties: { a: { type: "string", title: hostile, description: hostile }, [hostile]: { enum: [hostile] } },
    },
    defaults: {},
  };
  await open(waiting(asking("q1", asks, { server_name: hostile })), "#/approvals");
  expect(text()).toContain("onerror");
  expect(text()).not.toContain("\u202e");
  expect(text()).toContain("⟨U+202E⟩");
  expect(document.querySelectorAll("main img, main script")).toHaveLength(0);
});

test("an answer after its time is not taken", async () => {
  await open(waiting(question("q1", { expires_at: Date.now() + 1_500 })));
  await settle(2_600);
  expect(text()).toContain("The time for an answer is over.");
  button("Send").click();
  await settle();
  expect(calls).toEqual([]);
});

test("proposed values stand in the form, and only for members that it has", () => {
  expect(withDefaults({ properties: { a: { type: "string" } } }, { a: "x", b: 1 })).toEqual({
    properties: { a: { type: "string", default: "x" } },
  });
  expect(withDefaults(null, [])).toEqual({ properties: {} });
});

test.each(["", "#/approvals"])("a key pressed once more at “%s” never answers the next question", async (place) => {
  await open(waiting(question("q1"), question("q2"), question("q3")), place);
  await settle(wakeMs);
  const card = () => query("section:has(blockquote)");
  const press = () => focused().click();
  button("Send").focus();
  press();
  await frame();
  expect(calls).toHaveLength(1);
  expect(focused().tagName).toBe("H2");
  expect(card().contains(focused())).toBe(true);
  press();
  button("Send").click();
  await settle();
  expect(calls).toHaveLength(1);
  await settle(wakeMs);
  button("Send").focus();
  press();
  await frame();
  expect(calls).toHaveLength(2);
  await settle(wakeMs);
  button("Decline").focus();
  press();
  await frame();
  expect(calls[2]).toBe("answer_approval q3 deny ");
  expect(focused().tagName).toBe("H1");
});

test("a question without fields is answered with yes or no", async () => {
  const schema = { type: "object", properties: {} };
  await open(waiting(asking("q1", { mode: "form", message: "Go on?", schema, defaults: {} })));
  await settle(wakeMs);
  expect(text()).not.toContain("Never write a password");
  button("No");
  button("Yes").click();
  await settle();
  expect(calls).toEqual(["answer_approval q1 approve {}"]);
});
