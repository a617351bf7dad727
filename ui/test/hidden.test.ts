/** The window marks what the bridge's scan finds, in the same places and with the same names. */
import { expect, test } from "vitest";
import { plain } from "../src/lib/plain";
import { hidesSomething, pieces } from "../src/lib/visible";
import cases from "./hidden-cases.json";

test("whatever the scan marks in a text is marked in the window, and nothing else", () => {
  expect(cases.length).toBeGreaterThan(1000);
  for (const [text, shown] of cases as [string, string][]) {
    expect(plain(text), JSON.stringify(text)).toBe(shown);
    expect(hidesSomething(text), JSON.stringify(text)).toBe(pieces(text).some(({ kind }) => kind !== "text"));
  }
});
