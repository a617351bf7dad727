/** How the window's components are grouped, as ARCHITECTURE.md says. */
import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";

const place = "src/components";
const entries = readdirSync(place, { withFileTypes: true });

test("the building blocks know neither the bridge nor a room", () => {
  const blocks = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  const told = blocks.flatMap((name) =>
    [...readFileSync(`${place}/${name}`, "utf8").matchAll(/from "([^"]+)"/g)]
      .map(([, from = ""]) => from)
      .filter(
        (from) => /\/(?:bridge|rpc|store\.svelte)$/.test(from) || (from.startsWith("./") && from.lastIndexOf("/") > 1),
      )
      .map((from) => `${name} from ${from}`),
  );
  expect(blocks.length).toBeGreaterThan(0);
  expect(told).toEqual([]);
});

test("the map names every room, and no other", () => {
  const line = readFileSync("../ARCHITECTURE.md", "utf8").match(/^\| `ui\/` \|.*$/m)?.[0] ?? "";
  const named = /by purpose: (.*?); at their root/.exec(line)?.[1] ?? "";
  const rooms = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  expect([...named.matchAll(/`([\w-]+)`/g)].map(([, name]) => name).sort()).toEqual(rooms.sort());
});
