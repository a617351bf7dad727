import { flushSync } from "svelte";
import { expect, test } from "vitest";

import type { ConnectorView } from "../src/lib/bridge";
import { withoutOuterIndent } from "../src/lib/entry";
import { router } from "../src/lib/router.svelte";
import { store } from "../src/lib/store.svelte";
import { calls, publish } from "./rpc-fixture";
import { button, focused, frame, go, open, query, settle, text, write } from "./window";
import { answer, connector, fileTools, now, ordinary, tool, world } from "./worlds";

const hostile = '<img src=x onerror="document.title=1">';

test("what an upstream wrote is text on every screen", async () => {
  const made = world(
    [
      connector("x", {
        name: hostile,
        description: hostile,
        summary: hostile,
        status: "error",
        error: hostile,
        error_detail: hostile,
      }),
    ],
    {
      tools: {
        x: [
          tool(
            "x",
            hostile,
            { type: "object", properties: { [hostile]: { type: "string", description: hostile } } },
            { title: hostile, description: hostile },
          ),
        ],
      },
      rejected: [{ name: hostile, reason: hostile }],
      log: [hostile],
      entries: { x: JSON.stringify({ command: hostile }) },
      answer: () => answer({ content: [{ type: "text", text: hostile }], structured: hostile }),
    },
  );
  made.snapshot.config.notices = [{ level: "error", message: hostile, server: hostile }];
  await open(made);
  const places = [
    "",
    "#/connectors/x",
    `#/connectors/x/tools/${encodeURIComponent(hostile)}`,
    "#/connectors/x/log",
    "#/connectors/x/settings",
  ];
  for (const place of places) {
    await go(place);
    if (place.includes("/tools/")) {
      button("Try it").click();
      await settle();
    }
    const shown = text() + [...document.querySelectorAll("textarea")].map((area) => area.value).join("");
    expect(shown, place).toContain("onerror");
    expect(document.querySelectorAll("img, script, iframe"), place).toHaveLength(0);
    expect(document.querySelectorAll("[style]"), place).toHaveLength(0);
  }
});

test("the list says how many there are and how many need the person", async () => {
  await open(world(ordinary));
  expect(query("header").textContent).toContain("8 connectors · 82 tools · 3 need you");
});

test("a switch shows the wish at once and the truth when the change is refused", async () => {
  await open(world(ordinary, { refusal: { code: "not_saved", error: "The disk is full." } }));
  const toggle = button("Use Files");
  toggle.click();
  flushSync();
  expect(toggle.getAttribute("aria-checked")).toBe("false");
  await settle();
  expect(toggle.getAttribute("aria-checked")).toBe("true");
  expect(query("[role=alert] p").textContent).toBe("The disk is full.");
});

test("a switch follows the snapshot", async () => {
  await open(world(ordinary));
  button("Use Files").click();
  await settle();
  expect(calls).toEqual(["set_enabled files false"]);
  expect(button("Use Files").getAttribute("aria-checked")).toBe("false");
  publish((snapshot) => ({ ...snapshot, connectors: ordinary }));
  await settle(2_000);
  expect(button("Use Files").getAttribute("aria-checked")).toBe("true");
});

test("the search finds a connector by one of its tools", async () => {
  await open(world(ordinary, { tools: { files: fileTools } }));
  await write(query("[data-search]"), "directory_tree");
  await settle();
  expect([...document.querySelectorAll("li .name")].map((name) => name.textContent?.trim())).toEqual(["Files"]);
  expect(text()).toContain("has the tool directory_tree");
});

test("the slash key goes to the search, but not while writing", async () => {
  await open(world(ordinary));
  const press = (target: EventTarget) => {
    const event = new KeyboardEvent("keydown", { key: "/", bubbles: true, cancelable: true });
    target.dispatchEvent(event);
    return event.defaultPrevented;
  };
  expect(press(document.body)).toBe(true);
  expect(document.activeElement).toBe(query("[data-search]"));
  expect(press(query("[data-search]"))).toBe(false);
});

test("the heading gets the focus on another screen, not on another tab", async () => {
  await open(world(ordinary, { tools: { files: fileTools } }));
  await go("#/connectors/files");
  await settle();
  expect(document.activeElement?.textContent).toBe("Files");
  query("nav.tabs a").focus();
  await go("#/connectors/files/tools");
  expect(document.activeElement?.tagName).toBe("A");
});

test("a tool gets the arguments exactly as they were written", async () => {
  const schema = { type: "object", properties: { n: { type: "number" }, t: { type: "string" } }, required: ["n"] };
  await open(world(ordinary, { tools: { files: [tool("files", "f", schema)] } }), "#/connectors/files/tools/f");
  button("Try it").click();
  await settle();
  expect(text()).toContain("This is required.");
  expect(calls).toEqual([]);
  await write(query("#argument-0"), "12345678901234567890123.10");
  button("Try it").click();
  await settle();
  expect(calls).toEqual(['try_tool mcp__files__f {"n":12345678901234567890123.10}']);
  expect(text()).toContain("Done in 3\u00a0ms");
  button("Write it as JSON instead").click();
  await settle();
  expect(query<HTMLTextAreaElement>("#raw-arguments").value).toBe('{\n  "n": 12345678901234567890123.10\n}');
});

test("a tool is called what its makers call it for people, with its own name beside", async () => {
  const titled = tool("files", "f_1", { type: "object" }, { title: "Find a file", description: "Finds it." });
  await open(world(ordinary, { tools: { files: [titled, tool("files", "g_2", {})] } }), "#/connectors/files/tools/f_1");
  expect([...document.querySelectorAll("main li .name")].map(({ textContent }) => textContent)).toEqual([
    "Find a file",
    "g_2",
  ]);
  expect(query("main li").textContent).toContain("f_1");
  expect(query("#tool-name").textContent?.trim()).toBe("Find a file");
});

test("a slow tool can be cancelled after half a second and says so", async () => {
  await open(
    world(ordinary, { tools: { files: fileTools }, answer: () => "never" }),
    "#/connectors/files/tools/list_directory",
  );
  await write(query("#argument-0"), ".");
  button("Try it").click();
  await settle(400);
  expect(document.querySelector("progress")).toBeNull();
  await settle(200);
  expect(document.querySelector("progress")).not.toBeNull();
  button("Cancel").click();
  await settle();
  expect(calls.at(-1)).toBe("cancel_try");
  expect(text()).toContain("Cancelled.");
});

test("the answer of a tool stays when its connector connects meanwhile", async () => {
  const asleep = connector("files", { status: "sleeping" });
  const made = world([asleep], { tools: { files: fileTools } });
  await open(made, "#/connectors/files/tools/list_directory");
  await write(query("#argument-0"), ".");
  button("Try it").click();
  made.tools["files"] = structuredClone(fileTools);
  publish((snapshot) => ({ ...snapshot, connectors: [connector("files", { status: "connected" })] }));
  await settle();
  expect(text()).toContain("Done in 3\u00a0ms");
  publish((snapshot) => ({ ...snapshot, connectors: [connector("files", { status: "connected", tools: 4 })] }));
  await settle();
  expect(text()).toContain("Done in 3\u00a0ms");
  expect(calls).toHaveLength(1);
});

test("adding shows what will run and the consent, and refuses an id that is taken", async () => {
  const entry = '{"command":"npx","args":["-y","weather-mcp"],"env":{"KEY":"YOUR_KEY"}}';
  const proposals = [
    { id: "files", entry, summary: "npx -y weather-mcp", notes: ["No fixed version."], problem: null },
  ];
  await open(world(ordinary, { propose: () => ({ proposals, problem: null }) }), "#/add");
  await write(query("#paste"), "npx -y weather-mcp");
  await settle(300);
  expect(text()).toContain("This downloads and runs a program that can read everything you can.");
  expect(query("pre").textContent).toBe("npx -y weather-mcp");
  expect(text()).toContain("KEY = (your key KEY)");
  expect(text()).toContain("Another connector has this short name already.");
  expect(button("Add").disabled).toBe(true);
  await write(query("#proposal-0"), "weather");
  query("form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await settle();
  expect(calls[0]).toContain("${secret:KEY}");
});

test("a program that is not found is told before it is added, and may be added on purpose", async () => {
  const proposal = { entry: '{"command":"hello"}', summary: "hello", notes: [], problem: null };
  const propose = (given: string) => ({
    proposals: [{ ...proposal, id: "hello", entry: JSON.stringify({ command: given.split(" ")[0] }) }],
    problem: null,
  });
  const missingProgram = (entry: string) => (entry.includes("hello") ? "hello" : null);
  await open(world(ordinary, { propose, missingProgram }), "#/add");
  await write(query("#paste"), "hello I want to connect my calendar");
  await settle(500);
  expect(text()).toContain("No program named “hello” was found on this computer.");
  expect(document.querySelectorAll("main .primary")).toHaveLength(0);
  button("Add all the same").click();
  await settle();
  expect(calls[0]).toContain("add hello");
  await write(query("#paste"), "npx weather");
  await settle(500);
  expect(text()).not.toContain("was found on this computer");
  expect(button("Add").className).toContain("primary");
});

test("a later answer to an earlier paste is dropped", async () => {
  const asked: string[] = [];
  await open(
    world(ordinary, {
      propose: (given) => {
        asked.push(given);
        return { proposals: [], problem: `about ${given}` };
      },
    }),
    "#/add",
  );
  await write(query("#paste"), "h");
  await settle(100);
  await write(query("#paste"), "https://a.example");
  await settle(300);
  expect(asked).toEqual(["https://a.example"]);
  expect(text()).toContain("about https://a.example");
});

test("an entry with a mistake cannot be saved and shows where it is", async () => {
  await open(world(ordinary, { entries: { files: '{ "command": "x" }' } }), "#/connectors/files/settings");
  await write(query("textarea"), '{\n  "command" "x"\n}');
  expect(text()).toContain("Not JSON yet: look at line 2, column 13.");
  expect(button("Save").disabled).toBe(true);
});

test("a saved entry is strict JSON, and lost comments are announced", async () => {
  await open(world(ordinary, { entries: { files: '{ "command": "x" }' } }), "#/connectors/files/settings");
  await write(query("textarea"), '{ // why\n "command": "y", }');
  expect(text()).toContain("Comments in it are lost");
  query("form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await settle();
  expect(JSON.parse((calls[0] ?? "").replace("replace files ", ""))).toEqual({ command: "y" });
});

test("removing asks first, and a connector that is gone says so", async () => {
  await open(world(ordinary), "#/connectors/files/settings");
  button("Remove…").click();
  await settle();
  expect(calls).toEqual([]);
  expect(text()).toContain("Remove Files?");
  button("Remove").click();
  await settle();
  expect(calls).toEqual(["remove files"]);
  await go("#/connectors/files");
  expect(text()).toContain("There is no connector “files”.");
});

test("problems of file and port are told", async () => {
  const made = world(ordinary);
  made.snapshot.api = { state: "port_taken", port: 7771, message: "Port 7771 is held by node (pid 4242)." };
  made.snapshot.config.notices = [{ level: "error", message: "A comma is missing on line 14.", line: 14, column: 7 }];
  await open(made);
  const alerts = [...document.querySelectorAll("[role=alert]")].map((one) => one.textContent).join(" ");
  expect(alerts).toContain("held by node");
  expect(alerts).toContain("line 14");
});

test("a mistake in one entry is told on its row and its page, and not a second time above the list", async () => {
  const error = 'Connector "both" (line 3, column 7): an entry has either "command" or "url", not both; remove one.';
  const both = connector("both", { status: "invalid", enabled: false, tools: 0, action: "edit", error });
  const made = world([both]);
  made.snapshot.config.notices = [{ level: "error", message: error, server: "both", line: 3, column: 7 }];
  await open(made);
  expect(query("li").textContent).toContain("not both; remove one");
  expect(text().split("not both; remove one")).toHaveLength(2);
  expect(query("main").textContent).not.toContain("0 tools");
  await go("#/connectors/both");
  expect(text()).toContain("What is wrong");
  expect(text()).toContain("not both; remove one");
});

test("a connector that works and was never used says what to do next", async () => {
  await open(world([connector("new", { tools: 2 })]), "#/connectors/new");
  expect(text()).toContain("Ready. Assistants can use its 2 tools");
  expect(query("a.primary").getAttribute("href")).toBe("#/connectors/new/tools");
  publish((snapshot) => ({ ...snapshot, connectors: [connector("new", { tools: 2, used_at: now })] }));
  await settle();
  expect(document.querySelector("a.primary")).toBeNull();
});

test("the tools of a connector that does not work say why there are none", async () => {
  const broken = connector("x", { status: "error", tools: 0, error: "The program exited with code 1 by itself." });
  await open(world([broken]), "#/connectors/x/tools");
  expect(text()).toContain("The program exited with code 1 by itself.");
});

test("the first start reads the note in the folder and tells the address for assistants", async () => {
  const made = world([connector("filesystem", { name: "Files" })], {
    opening: { reason: "first_run", route: null },
    tools: { filesystem: [tool("filesystem", "read_text_file", { type: "object" })] },
    answer: () => answer({ content: [{ type: "text", text: "This folder is yours." }] }),
  });
  await open(made);
  button("Try it").click();
  await settle();
  expect(calls).toEqual(['try_tool mcp__filesystem__read_text_file {"path":"welcome.md"}']);
  expect(text()).toContain("This folder is yours.");
  expect(text()).toContain("No assistant is set up with a click yet.");
  const byHand = query<HTMLDetailsElement>("section[aria-labelledby=connect-help] details");
  expect(byHand.open).toBe(false);
  expect(byHand.querySelector("summary")?.textContent).toBe("For those who set it up by hand");
  expect(byHand.textContent).toContain("http://127.0.0.1:7771/mcp/tools");
  button("Hide this introduction").click();
  await settle();
  expect(text()).not.toContain("Welcome to");
});

test("the focus stays near when the thing it was on goes away", async () => {
  const schema = { type: "object", properties: { tags: { type: "array", items: { type: "string" } } } };
  await open(world(ordinary, { tools: { files: [tool("files", "f", schema)] } }), "#/connectors/files/tools/f");
  for (let item = 0; item < 3; item += 1) {
    button("Add item").click();
    await settle();
  }
  for (const place of [2, 1]) {
    button(`Remove ${place + 1}`).focus();
    focused().click();
    await frame();
    expect(focused().getAttribute("aria-label")).toBe(`Remove ${place}`);
  }
  focused().click();
  await frame();
  expect(focused().textContent).toBe("Add item");

  button("Write it as JSON instead").focus();
  focused().click();
  await frame();
  expect(focused().tagName).not.toBe("BODY");
});

test("cancelling a tool leaves the focus on its button", async () => {
  await open(
    world(ordinary, { tools: { files: fileTools }, answer: () => "never" }),
    "#/connectors/files/tools/list_directory",
  );
  await write(query("#argument-0"), ".");
  button("Try it").focus();
  button("Try it").click();
  await settle(600);
  expect(focused()).toBe(button("Try it"));
  button("Cancel").focus();
  focused().click();
  await frame();
  expect(focused()).toBe(button("Try it"));
});

test("closing what is told once leaves the focus on the screen", async () => {
  await open(world(ordinary, { opening: { reason: "no_tray_host", route: null } }));
  button("Close").focus();
  focused().click();
  await frame();
  expect(focused().textContent).toBe("Add connector");
});

test("whoever clicks on nothing is not sent anywhere", async () => {
  await open(world(ordinary, { opening: { reason: "no_tray_host", route: null } }));
  button("Close").focus();
  document.body.dispatchEvent(new Event("pointerdown", { bubbles: true }));
  focused().blur();
  store.dismissed["no_tray_host"] = true;
  await frame();
  expect(focused()).toBe(document.body);
});

test("the tray's route opens its place", async () => {
  await open(world(ordinary, { opening: { reason: "asked", route: "#/connectors/postgres" } }));
  await settle();
  expect(router.route).toMatchObject({ screen: "detail", id: "postgres" });
});

test("a connector that was added opens once its snapshot is there, with the focus on its name", async () => {
  const proposals = [{ id: "weather", entry: '{"command":"x"}', summary: "x", notes: [], problem: null }];
  await open(world(ordinary, { propose: () => ({ proposals, problem: null }) }), "#/add");
  await write(query("#paste"), "x");
  await settle(300);
  query("form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await settle(100);
  expect(location.hash).toBe("#/add");
  publish((snapshot) => ({ ...snapshot, connectors: [...snapshot.connectors, connector("weather")] }));
  await settle();
  await settle();
  expect(location.hash).toBe("#/connectors/weather");
  expect(text()).not.toContain("is gone");
  expect(document.activeElement?.tagName).toBe("H1");
});

test("what needs the person is listed alone with a click, and all again with another", async () => {
  await open(world(ordinary));
  const rows = () => document.querySelectorAll("main li").length;
  const all = rows();
  button("3 need you").click();
  await settle();
  expect(rows()).toBe(3);
  expect(button("3 need you").getAttribute("aria-pressed")).toBe("true");
  await go("#/connectors/notion");
  await go("");
  expect(rows()).toBe(3);
  button("3 need you").click();
  await settle();
  expect(rows()).toBe(all);
});

test("which connectors need the person is the bridge's word, as it is in the tray", async () => {
  const made = world([connector("a"), connector("b"), connector("c", { status: "error" })]);
  made.snapshot.needs = { a: { why: "held_back", tools: 2, prompts: 0 } };
  await open(made);
  button("2 need you").click();
  await settle();
  expect([...document.querySelectorAll("main li .name")].map(({ textContent }) => textContent?.trim())).toEqual([
    "a",
    "c",
  ]);
});

test("going back finds the list where it was left", async () => {
  await open(world(ordinary));
  const main = query("main");
  main.scrollTop = 120;
  main.dispatchEvent(new Event("scroll"));
  await go("#/connectors/notion");
  await settle();
  expect(main.scrollTop).toBe(0);
  await go("");
  await settle();
  expect(main.scrollTop).toBe(120);
  await go("#/settings");
  await settle();
  expect(main.scrollTop).toBe(0);
});

test("what went wrong with a tool is gone once its connector works again", async () => {
  const state = (status: ConnectorView["status"]) => [connector("files", { status })];
  const made = world(state("connected"), {
    tools: { files: fileTools },
    answer: () => ({ code: "needs_sign_in", error: "Sign in first." }),
  });
  await open(made, "#/connectors/files/tools/list_directory");
  await write(query("#argument-0"), ".");
  button("Try it").click();
  await settle();
  publish((snapshot) => ({ ...snapshot, connectors: state("needs_sign_in") }));
  await settle();
  expect(text()).toContain("Sign in first.");
  publish((snapshot) => ({ ...snapshot, connectors: state("connected") }));
  await settle();
  expect(text()).not.toContain("Sign in first.");
});

test.each([
  ['{"a": 1}', '{"a": 1}'],
  ['{\n      "a": {\n        "b": 1\n      }\n    }', '{\n  "a": {\n    "b": 1\n  }\n}'],
  ['{\n\t\t\t"a": 1,\n\n\t\t}', '{\n\t"a": 1,\n\n}'],
  ['{\n    "a": 1\n}', '{\n    "a": 1\n}'],
])("the entry %j shows without the indentation of its place", (written, shown) => {
  expect(withoutOuterIndent(written)).toBe(shown);
});
