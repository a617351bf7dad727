import { expect, test } from "vitest";

import type { ConnectorView, SignInStage, SignInView } from "../src/lib/bridge";
import { withOAuth } from "../src/lib/entry";
import { readJson } from "../src/lib/json-text";
import { aroundHost, isFinalAddress } from "../src/lib/sign-in";
import { mendOf } from "../src/lib/status";
import { store } from "../src/lib/store.svelte";
import { calls, publish, world as present, type World } from "./rpc-fixture";
import { button, focused, frame, go, open, query, settle, text, write } from "./window";
import { connector, now, ordinary, signIn, waitingStage, world } from "./worlds";

const issuer = "https://login.example.org/tenants/42";
const entry =
  '{ // ours\n  "url": "https://mcp.notion.com/mcp", "big": 12345678901234567890123, "oauth": { "scopes": ["a"] }, }';

function at(stage: SignInStage, over: Partial<SignInView> = {}): World {
  const made = world(ordinary, { entries: { notion: entry } });
  made.snapshot.sign_ins = [signIn(stage, over)];
  return made;
}

const page = "#/connectors/notion";
const panel = () => query("section[aria-labelledby=sign-in]").textContent?.replace(/\s+/g, " ") ?? "";
const hasButton = (name: string) =>
  [...document.querySelectorAll("button")].some((one) => one.textContent?.trim() === name);

/** The bridge's word that a sign-in ended well. */
function signedIn(): void {
  publish((snapshot) => ({
    ...snapshot,
    sign_ins: [],
    connectors: snapshot.connectors.map((one): ConnectorView => {
      if (one.id !== "notion") return one;
      const { error: _error, action: _action, ...rest } = one;
      return { ...rest, status: "connected", auth: { state: "signed-in", scopes: ["read"] } };
    }),
  }));
}

test("the row's button starts the sign-in and shows how far it is", async () => {
  await open(world(ordinary, { signIn: () => signIn(waitingStage) }));
  button("Sign in: Notion").click();
  await settle();
  expect(calls).toEqual(["sign_in notion  "]);
  expect(location.hash.startsWith(page)).toBe(true);
  expect(panel()).toContain("Waiting for your browser");
  await go("");
  expect(mendOf(connector("a", { action: "sign_in" }), waitingStage)).toMatchObject({ kind: "open" });
  expect(query<HTMLAnchorElement>("[aria-label='Go on: Notion']").getAttribute("href")).toContain(page);
});

test("while the browser is open the page says where one signs in, where the access goes, and what it asks for", async () => {
  await open(at(waitingStage), page);
  for (const part of ["login.notion.com", "mcp.notion.com", "read", "write"]) expect(panel()).toContain(part);
  button("Open again").click();
  await settle();
  button("Cancel").click();
  await settle();
  expect(calls).toEqual(["open_sign_in_again notion", "cancel_sign_in notion"]);
  expect(panel()).toContain("Sign in to Notion");
});

test("asking how to sign in can be cancelled, however long the answer takes", async () => {
  await open(world(ordinary, { signIn: () => signIn({ stage: "preparing" }) }), page);
  button("Sign in").click();
  await settle();
  expect(panel()).toContain("Asking how to sign in");
  button("Cancel").click();
  await settle();
  expect(calls).toEqual(["sign_in notion  ", "cancel_sign_in notion"]);
  expect(button("Sign in").getAttribute("aria-disabled")).toBe("false");
});

test("after twenty seconds, and not before, the other way is offered", async () => {
  await open(at(waitingStage, { since: Date.now() }), page);
  await settle(19_000);
  expect(hasButton("Try the other way")).toBe(false);
  await settle(2_000);
  button("Try the other way").click();
  await settle();
  expect(calls).toEqual(["sign_in notion  loopback"]);
});

test("a browser that did not come back in time is waited for no longer, with or without a word of the bridge", async () => {
  await open(at({ ...waitingStage, expires_at: Date.now() + 30_000 }), page);
  await settle(29_000);
  expect(panel()).toContain("Waiting for your browser");
  await settle(2_000);
  expect(panel()).not.toContain("Waiting for your browser");
  expect(panel()).toContain("The sign-in took too long");
  button("Try again").click();
  await settle();
  expect(calls).toEqual(["sign_in notion  "]);
});

test("without another way only pasting is offered", async () => {
  const { other_way: _other, ...only } = waitingStage;
  await open(at(only, { since: now - 60_000 }), page);
  expect(hasButton("Try the other way")).toBe(false);
  await write(query("#final-address"), "https://example.com/nothing");
  query<HTMLFormElement>("form").requestSubmit();
  await settle();
  expect(panel()).toContain("That is another address");
  expect(calls).toEqual([]);
  await write(query("#final-address"), " neuron-connect://oauth/callback?code=c&state=s ");
  query<HTMLFormElement>("form").requestSubmit();
  await settle();
  expect(calls).toEqual(["paste_sign_in neuron-connect://oauth/callback?code=c&state=s"]);
  expect(panel()).toContain("No sign-in waits for this answer.");
});

test("another domain needs a tick, and a tick is for the issuer it was set for", async () => {
  await open(at({ stage: "confirm", issuer, changed: false }), page);
  const goOn = () => button("Go on to the sign-in");
  goOn().click();
  await settle();
  expect(calls).toEqual([]);
  query<HTMLInputElement>("input[type=checkbox]").click();
  await settle();
  publish((snapshot) => ({
    ...snapshot,
    sign_ins: [signIn({ stage: "confirm", issuer: "https://other.example", changed: true })],
  }));
  await settle();
  expect(panel()).toContain("The place to sign in has changed");
  goOn().click();
  await settle();
  expect(calls).toEqual([]);
  query<HTMLInputElement>("input[type=checkbox]").click();
  await settle();
  goOn().click();
  await settle();
  expect(calls).toEqual(["sign_in notion https://other.example "]);
});

test("a page of somebody else is named in the tick, and a tick for one page is none for another", async () => {
  const confirm = { stage: "confirm", issuer, changed: false, code_goes_to: "tokens.example" } as const;
  const seen = (sign_in_at: string) => [{ ...signIn(confirm), sign_in_at }];
  await open(at(confirm), page);
  publish((snapshot) => ({ ...snapshot, sign_ins: seen("login.honest.example") }));
  await settle();
  expect(panel()).toContain("I know login.honest.example and https://login.example.org/tenants/42");
  expect(panel()).toContain("goes on to tokens.example");
  query<HTMLInputElement>("input[type=checkbox]").click();
  await settle();
  publish((snapshot) => ({ ...snapshot, sign_ins: seen("other.example") }));
  await settle();
  button("Go on to the sign-in").click();
  await settle();
  expect(calls).toEqual([]);
});

test("a server that must be told of the app gets exactly what the person brings back", async () => {
  const redirect_uri = "http://127.0.0.1:7771/mcp/oauth/callback";
  await open(at({ stage: "needs_client", issuer, redirect_uri }), page);
  expect(query("ol code").textContent).toBe(redirect_uri);
  await write(query("#client-id"), " abc ");
  await write(query("#client-secret"), "s3cret");
  button("Save and sign in").click();
  await settle();
  const [replaced, ...rest] = calls;
  expect(replaced).not.toContain("s3cret");
  expect(replaced).toContain("12345678901234567890123");
  expect(JSON.parse(replaced!.replace("replace notion ", ""))["oauth"]).toEqual({
    scopes: ["a"],
    clientId: "abc",
    issuer,
    clientSecret: "${secret:CLIENT_SECRET}",
  });
  expect(rest).toEqual(["set_secret notion CLIENT_SECRET s3cret", "sign_in notion  "]);
  expect(query<HTMLInputElement>("#client-secret").value).toBe("");
});

const byHand =
  '{ "url": "https://mcp.notion.com/mcp", "oauth": { "clientId": "abd", "issuer": "https://login.example.org", "clientSecret": "${secret:CLIENT_SECRET}" } }';
const stages: SignInStage[] = [waitingStage, { stage: "failed", outcome: "failed", message: "It does not know it." }];

test.each(stages)("a client that was entered by hand can be corrected: $stage", async (stage) => {
  const made = at(stage, { since: now - 60_000 });
  made.entries = { notion: byHand };
  await open(made, page);
  button("Change Client ID").focus();
  focused().click();
  await frame();
  expect(focused().textContent?.trim()).toBe("Change Client ID");
  expect(focused().tagName).toBe("H2");
  if (stage.stage === "failed") expect(panel()).toContain("login.example.org did not accept this Client ID or secret");
  expect(query<HTMLInputElement>("#client-id").value).toBe("abd");
  expect(query<HTMLInputElement>("#client-secret").value).toBe("");
  await write(query("#client-id"), "abc");
  button("Save and sign in").click();
  await settle();
  expect(JSON.parse(calls[0]!.replace("replace notion ", ""))["oauth"]).toEqual({
    clientId: "abc",
    issuer: "https://login.example.org",
    clientSecret: "${secret:CLIENT_SECRET}",
  });
  expect(calls.slice(1)).toEqual(["sign_in notion  "]);
});

test("a client that was not entered by hand is not asked for", async () => {
  await open(at(stages[1]!), page);
  expect(hasButton("Change Client ID")).toBe(false);
});

test.each<[string, SignInStage | null]>([
  ["begin", null],
  ["no_pkce", { stage: "no_pkce", issuer }],
  ["needs_client", { stage: "needs_client", issuer, redirect_uri: "http://127.0.0.1:7771/mcp/oauth/callback" }],
  ["failed", stages[1]!],
])("whoever has a key instead is led to its field: %s", async (_step, stage) => {
  await open(stage ? at(stage) : world(ordinary, { entries: { notion: entry } }), page);
  expect(panel()).toContain("If its makers gave you a key, enter it here.");
  button("I have a key instead").click();
  await settle();
  const [replaced, ...rest] = calls;
  expect(JSON.parse(replaced!.replace("replace notion ", ""))).toMatchObject({
    auth: "token",
    oauth: { scopes: ["a"] },
  });
  expect(replaced).toContain("12345678901234567890123");
  expect(rest).toEqual(stage ? ["cancel_sign_in notion"] : []);
});

test("a sign-in without the usual protection goes on only after a word for this connector", async () => {
  await open(at({ stage: "no_pkce", issuer }), page);
  button("Sign in all the same").click();
  await settle();
  expect(calls).toHaveLength(2);
  expect(calls[0]).toContain('"allowMissingPkce": true');
  expect(calls[1]).toBe("sign_in notion  ");
});

test.each([
  ["denied", "The sign-in was turned down"],
  ["expired", "The sign-in took too long"],
  ["failed", "The sign-in did not work"],
] as const)("a sign-in that is %s says so with the reason and can be tried again", async (outcome, title) => {
  await open(at({ stage: "failed", outcome, message: "<b>why</b>" }), page);
  expect(panel()).toContain(title);
  expect(panel()).toContain("<b>why</b>");
  button("Try again").click();
  await settle();
  expect(calls).toEqual(["sign_in notion  "]);
});

test("a sign-in that could not begin says why", async () => {
  await open(
    world(ordinary, { refusal: { code: "unsafe_authorization_url", error: "Its address is not safe." } }),
    page,
  );
  button("Sign in").click();
  await settle();
  expect(panel()).toContain("Its address is not safe.");
});

test("more that is wanted is shown before it is allowed", async () => {
  const asked = ordinary.map((one): ConnectorView =>
    one.id === "notion" ? { ...one, auth: { state: "needs-sign-in", scopes: ["write:pages"] } } : one,
  );
  await open(world(asked), page);
  expect(panel()).toContain("write:pages");
  expect(hasButton("I have a key instead")).toBe(false);
  button("Not now").click();
  await settle();
  button("Allow more").click();
  await settle();
  expect(calls).toEqual(["reconnect notion", "sign_in notion  "]);
});

test("the end of a sign-in is told on its page and on the list, and only when it was good", async () => {
  await open(at(waitingStage), page);
  publish((snapshot) => ({ ...snapshot, sign_ins: [signIn({ stage: "finishing" })] }));
  await settle();
  expect(panel()).toContain("Finishing");
  publish((snapshot) => ({ ...snapshot, sign_ins: [] }));
  await settle();
  expect(text()).not.toContain("Signed in to Notion.");
  signedIn();
  await settle();
  expect(text()).toContain("You are signed in.");
  expect(text()).not.toContain("Signed in to Notion.");
  await go("");
  expect(text()).not.toContain("Signed in to Notion.");
});

test("a sign-in that ended elsewhere is told on the list until the first step away from it", async () => {
  const told = () => text().includes("Signed in to Notion.");
  await open(at({ stage: "finishing" }));
  signedIn();
  await settle();
  expect(told()).toBe(true);
  await go("#/settings");
  await go("");
  expect(told()).toBe(false);
});

test("a step that changes takes the focus to its heading, and the end of them to the page's", async () => {
  await open(world(ordinary, { signIn: () => signIn({ stage: "preparing" }) }), page);
  button("Sign in").focus();
  focused().click();
  await frame();
  expect(focused().textContent).toContain("Asking how to sign in");
  publish((snapshot) => ({ ...snapshot, sign_ins: [signIn(waitingStage)] }));
  await frame();
  button("Open again").focus();
  publish((snapshot) => ({ ...snapshot, sign_ins: [signIn({ stage: "finishing" })] }));
  await frame();
  expect(focused().textContent).toContain("Finishing");
  signedIn();
  await frame();
  expect(text()).toContain("Sign out…");
  expect(focused().tagName).toBe("H1");
});

test("between a finished sign-in and what comes of it nothing else shows", async () => {
  await open(at({ stage: "finishing" }), page);
  publish((snapshot) => ({ ...snapshot, sign_ins: [] }));
  await settle();
  expect(panel()).toContain("Finishing");
  publish((snapshot) => ({
    ...snapshot,
    connectors: snapshot.connectors.map((one) => (one.id === "notion" ? { ...one, status: "connecting" } : one)),
  }));
  await settle(2_000);
  expect(panel()).toContain("Finishing");
  signedIn();
  await settle();
  expect(document.querySelector("section[aria-labelledby=sign-in]")).toBeNull();
});

test("a finished sign-in that nothing comes of is not shown for ever", async () => {
  await open(at({ stage: "finishing" }), page);
  publish((snapshot) => ({ ...snapshot, sign_ins: [] }));
  await settle(1_000);
  expect(panel()).toContain("Sign in to Notion");
});

test("the row of a failed sign-in says so and tries again", async () => {
  await open(at({ stage: "failed", outcome: "denied", message: "No." }));
  expect(text()).toContain("The sign-in was turned down");
  button("Try again: Notion").click();
  await settle();
  expect(calls).toEqual(["sign_in notion  "]);
});

test.each(["needs_sign_in", "needs_secret", "keychain_unavailable"] as const)(
  "connecting once more is not offered where it mends nothing: %s",
  async (status) => {
    await open(world([connector("k", { status })]), "#/connectors/k");
    expect(hasButton("Reconnect")).toBe(false);
  },
);

test("a cancelled sign-in is not told as a good one", async () => {
  await open(at(waitingStage), page);
  button("Cancel").click();
  await settle();
  expect(store.signedIn).toEqual([]);
});

test("signing out is asked for once more", async () => {
  await open(at(waitingStage), page);
  signedIn();
  await settle();
  expect(text()).toContain("You are signed in.");
  button("Sign out…").click();
  await settle();
  expect(calls).toEqual([]);
  button("Sign out").click();
  await settle();
  expect(calls).toEqual(["sign_out notion"]);
  expect(text()).toContain("Sign in to Notion");
});

function needsKey(over: Partial<World> = {}): World {
  const error = "The server did not accept this token (HTTP status 401).";
  return world([connector("k", { name: "K", status: "needs_secret", action: "set_secret", error })], {
    secrets: {
      k: [
        { name: null, set: true, withheld: false },
        { name: "PATH_KEY", set: false, withheld: false },
        { name: "TEAM", set: false, withheld: true },
      ],
    },
    ...over,
  });
}

test("a key goes out once and never stands in the window again", async () => {
  await open(needsKey(), "#/connectors/k");
  expect(text()).not.toContain("did not accept");
  expect(text()).toContain("Kept in this computer’s keychain");
  expect(text()).toContain("was entered for another address");
  const fields = [...document.querySelectorAll<HTMLInputElement>("form input")];
  expect(fields.map((field) => [field.type, field.value])).toEqual(Array(3).fill(["password", ""]));
  await write(fields[0]!, "token-1 ");
  await write(fields[2]!, "team-1");
  button("Save keys").click();
  await settle();
  expect(calls).toEqual(["set_secret k  token-1", "set_secret k TEAM team-1"]);
  expect(fields.map((field) => field.value)).toEqual(["", "", ""]);
});

test("a refused key is said to be refused, and the focus goes back to its field", async () => {
  const k = (over: Partial<ConnectorView>, sequence: number): ConnectorView[] => [
    connector("k", {
      name: "K",
      error: "The server did not accept this token (HTTP status 401).",
      ...over,
      connection: { ...connector("k").connection, sequence },
    }),
  ];
  const secrets = { k: [{ name: null, set: false as boolean, withheld: false }] };
  await open(
    world(k({ status: "needs_secret", error: "The key is not set. Enter it." }, 1), { secrets }),
    "#/connectors/k",
  );
  expect(text()).not.toContain("is not set");
  await write(query("#key-0"), "token-1");
  button("Save key").focus();
  focused().click();
  await settle();
  secrets.k[0]!.set = true;
  publish((snapshot) => ({ ...snapshot, connectors: k({ status: "connecting" }, 2) }));
  await frame();
  expect(text()).not.toContain("did not accept");
  expect(document.querySelector("#key-0")).not.toBeNull();
  publish((snapshot) => ({ ...snapshot, connectors: k({ status: "needs_secret" }, 3) }));
  await frame();
  expect(text()).toContain("K did not accept this key. Paste it again, or get a new one from its makers.");
  expect(focused().id).toBe("key-0");
});

test("choosing to enter a key leads the keyboard to the panel for it", async () => {
  await open(
    world(ordinary, { entries: { notion: entry }, secrets: { notion: [{ name: null, set: false, withheld: false }] } }),
    page,
  );
  button("I have a key instead").focus();
  focused().click();
  await settle();
  publish((snapshot) => ({
    ...snapshot,
    connectors: snapshot.connectors.map((one) => (one.id === "notion" ? { ...one, status: "needs_secret" } : one)),
  }));
  await frame();
  expect(focused().textContent).toBe("Key needed");
});

test("a key that is not kept stays in its field with the reason", async () => {
  const refusal = { code: "keychain_unavailable" as const, error: "The keychain is locked." };
  await open(needsKey({ refusal }), "#/connectors/k");
  await write(query("#key-0"), "token-1");
  button("Save keys").click();
  await settle();
  expect(text()).toContain("The keychain is locked.");
  expect(query<HTMLInputElement>("#key-0").value).toBe("token-1");
});

test("the settings promise the keychain only to keys that are entered", async () => {
  await open(world(ordinary), "#/settings");
  expect(text()).toContain("Keys that you enter in Neuron Connect are kept in this computer’s keychain.");
  expect(text()).not.toContain("never in a file");
});

test("keys are replaced and removed under settings, the last after a question", async () => {
  await open(needsKey(), "#/connectors/k/settings");
  expect(() => button("Remove PATH_KEY")).toThrow();
  button("Set PATH_KEY").click();
  await settle();
  button("Replace TEAM").click();
  await settle();
  await write(query("input[aria-label=TEAM]"), "new");
  button("Save").click();
  query<HTMLFormElement>("li form").requestSubmit();
  await settle();
  expect(calls).toEqual(["set_secret k TEAM new"]);
  button("Remove Key").click();
  await settle();
  button("Remove").click();
  await settle();
  expect(calls.slice(1)).toEqual(["forget_secret k "]);
});

test("a locked keychain is explained, looked at again, and left for memory only after a question", async () => {
  const made = world([connector("k", { status: "keychain_unavailable", action: "unlock_keychain" })]);
  made.snapshot.keychain = { kept_in: "keychain", state: "locked" };
  await open(made);
  expect(text()).toContain("Your keychain is locked");
  button("Try again").click();
  await settle();
  button("Keep secrets until I quit…").click();
  await settle();
  expect(calls).toEqual(["look_at_keychain"]);
  expect(text()).toContain("forgotten when you quit");
  button("Keep until I quit").click();
  await settle();
  expect(calls).toEqual(["look_at_keychain", "keep_until_quit"]);
  expect(present.snapshot.keychain.kept_in).toBe("memory");
  expect(text()).not.toContain("Your keychain is locked");
  expect(focused()).toBeTruthy();
});

test.each([
  ["{}", { x: true }],
  ['{ "url": "u", }', { x: true }],
  ['{ "oauth": null, "after": [1, {"oauth": 2}] }', { x: true }],
  ['{ "nested": {"oauth": {"y": 1}}, "oauth": {"y": 2} }', { y: 2, x: true }],
])("the sign-in's part of %j is set and the rest is kept", (before, oauth) => {
  const after = readJson(withOAuth(before, { x: true })) as Record<string, unknown>;
  expect(after["oauth"]).toEqual(oauth);
  const { oauth: _new, ...rest } = after;
  const { oauth: _old, ...kept } = readJson(before, true) as Record<string, unknown>;
  expect(rest).toEqual(kept);
});

test("the host of an address is found only where it is the host", () => {
  expect(aroundHost("https://a.example/b?c", "a.example")).toEqual({
    before: "https://",
    host: "a.example",
    after: "/b?c",
  });
  expect(aroundHost("https://bank.example@evil.example/", "evil.example")).toMatchObject({ host: "evil.example" });
  expect(aroundHost("https://evil.example/bank.example", "bank.example")).toMatchObject({ host: "" });
});

test("an address on which a sign-in ends holds a state", () => {
  expect(isFinalAddress("http://127.0.0.1:7771/mcp/oauth/callback?state=a&code=b")).toBe(true);
  expect(isFinalAddress("https://login.example/authorize?estate=a")).toBe(false);
});
