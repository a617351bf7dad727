import { expect, test } from "vitest";

import { readJson } from "../src/lib/json-text";
import { withoutPlainKeys } from "../src/lib/plain-keys";
import { calls, publish } from "./rpc-fixture";
import { button, open, query, settle, text, write } from "./window";
import { connector, ordinary, world } from "./worlds";

const ref = (name: string) => `\${secret:${name}}`;

test.each([
  [{ headers: { Authorization: "Bearer abc123" } }, { headers: { Authorization: `Bearer ${ref("TOKEN")}` } }, "abc123"],
  [{ headers: { "X-Api-Key": "abc123" } }, { headers: { "X-Api-Key": ref("X_API_KEY") } }, "abc123"],
  [{ env: { API_KEY: "abc123", PORT: "80" } }, { env: { API_KEY: ref("API_KEY"), PORT: "80" } }, "abc123"],
  [{ env: { githubToken: "abc123" } }, { env: { githubToken: ref("GITHUB_TOKEN") } }, "abc123"],
  [{ env: { OTHER: "ghp_0123456789abcdef" } }, { env: { OTHER: ref("OTHER") } }, "ghp_0123456789abcdef"],
  [{ args: ["-y", "x", "--api-key", "abc123"] }, { args: ["-y", "x", "--api-key", ref("API_KEY")] }, "abc123"],
  [{ args: ["--token=abc123"] }, { args: [`--token=${ref("TOKEN")}`] }, "abc123"],
  [{ args: ["-e", "API_KEY=abc123"] }, { args: ["-e", `API_KEY=${ref("API_KEY")}`] }, "abc123"],
  [
    { args: ["--header", "Authorization: Bearer abc123"] },
    { args: ["--header", `Authorization: Bearer ${ref("TOKEN")}`] },
    "abc123",
  ],
  [
    { url: "https://a.example/mcp?x=1&api_key=a%2Fb#c" },
    { url: `https://a.example/mcp?x=1&api_key=${ref("API_KEY")}#c` },
    "a/b",
  ],
  [
    { args: ["mcp-remote", "https://a.example/?token=abc123"] },
    { args: ["mcp-remote", `https://a.example/?token=${ref("TOKEN")}`] },
    "abc123",
  ],
])("a key in %j is found, and only it goes", (before, after, value) => {
  const { entry, keys } = withoutPlainKeys(JSON.stringify(before));
  expect(readJson(entry)).toEqual(after);
  expect(keys.map((key) => key.value)).toEqual([value]);
  expect(withoutPlainKeys(entry).keys).toEqual([]);
});

test.each([
  { headers: { Authorization: "Bearer ${secret:TOKEN}", "X-Api-Key": "${env:KEY}" } },
  {
    env: {
      API_KEY: "YOUR_KEY",
      TOKEN: "<token>",
      SECRET: "",
      MAX_TOKENS: "4096",
      KEY_FILE: "/k",
      SSH_KEY: "~/.ssh/id",
    },
  },
  { args: ["--api-key", "--verbose"] },
  { args: ["-y", "@scope/server-token", "--port", "80"] },
  { url: "https://a.example/mcp?page=1&token=" },
  { env: null, args: "x", headers: [1], url: 3 },
])("%j holds no key in plain text", (entry) => {
  const written = JSON.stringify(entry);
  expect(withoutPlainKeys(written)).toEqual({ entry: written, keys: [] });
});

test("each key gets a name of its own, the same key one, and everything else stays as it was written", () => {
  const written =
    '{ // ours\n "big": 12345678901234567890123, "headers": {"Authorization": "one"}, "env": {"TOKEN": "two", "B_TOKEN": "one", "X": "${secret:B_TOKEN}"}, }';
  const { entry, keys } = withoutPlainKeys(written);
  expect(keys).toEqual([
    { name: "TOKEN", value: "one" },
    { name: "TOKEN_2", value: "two" },
  ]);
  expect(entry).toContain("12345678901234567890123");
  expect(entry).not.toContain('"one"');
  expect(withoutPlainKeys("{ half")).toEqual({ entry: "{ half", keys: [] });
});

test("a key that is typed into an entry is warned of, and kept in the keychain after adding", async () => {
  const entry = '{"url":"https://a.example/mcp","headers":{"Authorization":"Bearer s3cret-key"}}';
  const proposals = [{ id: "weather", entry, summary: "", notes: [], problem: null }];
  await open(world(ordinary, { propose: () => ({ proposals, problem: null }) }), "#/add");
  await write(query("#paste"), "x");
  await settle(300);
  expect(text()).toContain("This looks like a key. It would be written to connectors.json");
  button("Keep it in the keychain").click();
  await settle();
  expect(text()).not.toContain("This looks like a key.");
  expect(text()).not.toContain("s3cret-key");
  expect(text()).toContain("Authorization = Bearer ${secret:TOKEN}");
  query("form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await settle();
  publish((snapshot) => ({ ...snapshot, connectors: [...snapshot.connectors, connector("weather")] }));
  await settle();
  expect(calls).toHaveLength(2);
  expect(calls[0]).not.toContain("s3cret-key");
  expect(calls[1]).toBe("set_secret weather TOKEN s3cret-key");
});
