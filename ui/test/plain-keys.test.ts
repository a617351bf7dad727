import { expect, test } from "vitest";

import { readJson } from "../src/lib/json-text";
import { withoutPlainKeys, withoutStandIns } from "../src/lib/plain-keys";
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

test.each([
  [{ env: { API_KEY: "YOUR_API_KEY", UNITS: "metric" } }, { env: { API_KEY: ref("API_KEY"), UNITS: "metric" } }],
  [{ headers: { Authorization: "Bearer <token>" } }, { headers: { Authorization: `Bearer ${ref("TOKEN")}` } }],
  [{ env: { TOKEN: "xxx" } }, { env: { TOKEN: ref("TOKEN") } }],
  [{ env: { OPENAI_API_KEY: "sk-proj-xxxxxxxx" } }, { env: { OPENAI_API_KEY: ref("OPENAI_API_KEY") } }],
  [{ env: { PASSWORD: "changeme" } }, { env: { PASSWORD: ref("PASSWORD") } }],
  [{ env: { AUTH: "YOUR_TOKEN" } }, { env: { AUTH: ref("AUTH") } }],
  [{ args: ["--api-key", "your-key-here"] }, { args: ["--api-key", ref("API_KEY")] }],
  [
    { url: "https://a.example/mcp?api_key=%3Ckey%3E&x=1" },
    { url: `https://a.example/mcp?api_key=${ref("API_KEY")}&x=1` },
  ],
])("what only holds the place of a key in %j is found", (before, after) => {
  expect(readJson(withoutStandIns(JSON.stringify(before)).entry)).toEqual(after);
  expect(withoutPlainKeys(JSON.stringify(before)).keys).toEqual([]);
});

test.each([
  { env: { API_KEY: "abc123", CITY: "<your city>", NAME: "your-name" } },
  { env: { TOKEN: "${secret:TOKEN}", KEY: "", KEY_FILE: "xxx" } },
  { args: ["[x]", "-y", "..."], url: "https://a.example/xxx?page=x" },
])("in %j nothing holds the place of a key", (entry) => {
  const written = JSON.stringify(entry);
  expect(withoutStandIns(written)).toEqual({ entry: written, keys: [] });
});

test("where something holds the place of a key, the key is asked for before adding and never written", async () => {
  const entry = '{"command":"npx","env":{"API_KEY":"YOUR_API_KEY","OTHER_TOKEN":"<token>"}}';
  const proposal = { id: "weather", entry, summary: "npx", notes: [], problem: null };
  await open(world(ordinary, { propose: () => ({ proposals: [proposal], problem: null }) }), "#/add");
  await write(query("#paste"), "npx");
  await settle(300);
  expect(text()).toContain("API_KEY = (your key API_KEY)");
  expect(text()).toContain("in place of “YOUR_API_KEY”");
  const fields = [...document.querySelectorAll<HTMLInputElement>("main input[type=password]")];
  expect(fields).toHaveLength(2);
  await write(fields[0] as HTMLInputElement, "s3cret-key");
  query("form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await settle();
  expect(calls[0]).toContain(ref("API_KEY"));
  expect(calls[0]).not.toMatch(/YOUR_API_KEY|<token>|s3cret/);
  expect(calls.slice(1)).toEqual(["set_secret weather API_KEY s3cret-key"]);
});

test("by hand there is always an Add, and what is marked as a key goes into the keychain, not into the file", async () => {
  await open(world(ordinary), "#/add/hand");
  expect(button("Add").disabled).toBe(true);
  expect(text()).not.toContain("${");
  query<HTMLInputElement>("input[value=server]").click();
  await settle();
  await write(query("#url"), "https://a.example/mcp");
  button("Add header").click();
  await settle();
  await write(query("[aria-label='Name 1']"), "X-Team");
  await write(query("[aria-label='Value 1']"), "s3cret-team");
  query<HTMLInputElement>("main input[type=checkbox]").click();
  await settle();
  expect(query<HTMLInputElement>("[aria-label='Value 1']").type).toBe("password");
  expect(query<HTMLInputElement>("[aria-label='Value 1']").value).toBe("s3cret-team");
  expect(text()).not.toContain("s3cret-team");
  query("form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await settle();
  expect(calls[0]).toContain(ref("X_TEAM"));
  expect(calls[0]).not.toContain("s3cret");
  expect(calls[1]).toBe("set_secret a X_TEAM s3cret-team");
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
  expect(text()).toContain("Authorization = Bearer (your key TOKEN)");
  query("form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await settle();
  publish((snapshot) => ({ ...snapshot, connectors: [...snapshot.connectors, connector("weather")] }));
  await settle();
  expect(calls).toHaveLength(2);
  expect(calls[0]).not.toContain("s3cret-key");
  expect(calls[1]).toBe("set_secret weather TOKEN s3cret-key");
});
