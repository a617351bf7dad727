import { expect, test } from "vitest";

import { effectOf, entryProblem, httpEntry, isLegalId, stdioEntry, suggestId } from "../src/lib/entry";
import { indentJson, isObjectText, jsonProblem } from "../src/lib/json-text";

test.each(["{}", "[]", '"a"', " 1.10 ", "null", '{"a":[1,{"b":"\\u00e9\\n"}]}', "12345678901234567890123"])(
  "%s is JSON",
  (text) => {
    expect(jsonProblem(text)).toBeNull();
  },
);

test.each([
  ["", "unfinished", 1, 1],
  ['{"a": 1,}', "unexpected", 1, 9],
  ['{\n  "a": 1\n  "b": 2\n}', "unexpected", 3, 3],
  ["{a: 1}", "unexpected", 1, 2],
  ['{"a": tru}', "unexpected", 1, 7],
  ['{"a": 01}', "unexpected", 1, 7],
  ['{"a": "x', "unfinished", 1, 7],
  ['{"a": "x\ny"}', "unexpected", 1, 7],
  ["{} {}", "trailing", 1, 4],
  ["{} // note", "trailing", 1, 4],
  ["[1", "unfinished", 1, 3],
])("%j is refused with its place", (text, kind, line, column) => {
  expect(jsonProblem(text)).toEqual({ kind, line, column });
});

test("every refused or accepted text is judged as JSON.parse judges it", () => {
  for (const text of [
    "{",
    "}",
    '{"a"}',
    '{"a":}',
    "[,]",
    "[1,,2]",
    "-",
    "1.",
    "'a'",
    "[[[]]]",
    '"\\x"',
    '"\\ud800"',
    "tru",
    "nul l",
  ]) {
    const isJson = (() => {
      try {
        JSON.parse(text);
        return true;
      } catch {
        return false;
      }
    })();
    expect(jsonProblem(text) === null, text).toBe(isJson);
  }
});

test("a hostile depth is a problem, not a crash", () => {
  expect(jsonProblem("[".repeat(100_000))).toMatchObject({ kind: "unexpected" });
});

test("an entry may hold comments and trailing commas, as the file may", () => {
  const text = '{\n  // "why"\n  "command": "npx", /* , } */\n  "args": ["//not a comment", "a,}",],\n}';
  expect(entryProblem(text)).toBeNull();
  expect(effectOf(text)).toMatchObject({ kind: "runs", command: ["npx", "//not a comment", "a,}"] });
});

test("a mistake behind a comment keeps its place", () => {
  expect(entryProblem('{ /* é */ "a" 1 }')).toEqual({ kind: "unexpected", line: 1, column: 15 });
});

test("indenting keeps every digit and every text", () => {
  expect(indentJson('{"a":1.10,"b":[],"c":[12345678901234567890123,"x, {y}"],"d":{}}')).toBe(
    '{\n  "a": 1.10,\n  "b": [],\n  "c": [\n    12345678901234567890123,\n    "x, {y}"\n  ],\n  "d": {}\n}',
  );
});

test("only an object is an object", () => {
  expect(isObjectText(" {}")).toBe(true);
  expect(isObjectText("[]")).toBe(false);
  expect(entryProblem("[]")).toEqual({ kind: "not_object" });
});

test("the form's entry says exactly what was filled in", () => {
  const entry = stdioEntry({
    command: " npx ",
    args: ["-y", "", "a b"],
    env: [
      { name: "KEY", value: "${secret:KEY}" },
      { name: " ", value: "dropped" },
    ],
    folder: "",
  });
  expect(JSON.parse(entry)).toEqual({
    transport: "stdio",
    command: "npx",
    args: ["-y", "a b"],
    env: { KEY: "${secret:KEY}" },
  });
  expect(JSON.parse(httpEntry({ url: "https://a.example/mcp", headers: [] }))).toEqual({
    transport: "http",
    url: "https://a.example/mcp",
  });
});

test.each([
  ['{"command":"npx","args":["-y","@scope/mcp-server-weather@1.2.3"]}', "weather"],
  ['{"command":"uvx","args":["mcp-server-time"]}', "time"],
  ['{"command":"/usr/bin/thing"}', "thing"],
  ['{"url":"https://mcp.linear.app/mcp"}', "linear"],
  ['{"url":"http://127.0.0.1:9000/mcp"}', "127"],
  ["{}", ""],
])("%s suggests a legal id", (entry, id) => {
  expect(suggestId(entry)).toBe(id);
  expect(id === "" || isLegalId(id)).toBe(true);
});

test.each([
  ["npx", "download"],
  ["/opt/node/bin/npx", "download"],
  ["C:\\Program Files\\nodejs\\npx.cmd", "download"],
  ["npx -y thing", "download"],
  ["docker", "download"],
  ["/usr/local/bin/thing", "program"],
  ["neuron-connectd", "built_in"],
  ["/tmp/neuron-connectd", "program"],
])("%s is consented to as %s", (command, what) => {
  expect(effectOf(JSON.stringify({ command }))).toMatchObject({ what });
});

test("a host that looks like another one shows as what it is", () => {
  expect(effectOf('{"url":"https://gіthub.com@evil.example/"}')).toMatchObject({ host: "evil.example" });
  expect(effectOf('{"url":"https://gіthub.com/"}')).toMatchObject({ host: "xn--gthub-n2e.com" });
});
