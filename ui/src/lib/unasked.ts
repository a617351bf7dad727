/** Which tools may be offered to be used without asking, and what rules say of a tool. Pure. */
import type { ToolView } from "./bridge";
import { isFlagged } from "./review";
import type { RuleView } from "./rule";

/** Those that assistants see. */
export function choosable(tools: readonly ToolView[]): ToolView[] {
  return tools.filter((tool) => tool.enabled && (tool.state === "approved" || tool.state === "reworded"));
}

/** Those that say of themselves that they only read, and in which nothing looks dangerous. */
export function lookUps(tools: readonly ToolView[]): ToolView[] {
  return choosable(tools).filter((tool) => tool.hints.read_only === true && !isFlagged(tool));
}

/** What is sent for a choice: the names that were shown, so that a yes covers no tool that came meanwhile. */
export function answerOf(
  choice: "nothing" | "look_up" | "these",
  reading: readonly string[],
  chosen: readonly string[],
): ["nothing" | "these", string[]] {
  if (choice === "nothing") return ["nothing", []];
  return ["these", [...(choice === "look_up" ? reading : chosen)]];
}

/** The rules that decide about this tool of this connector, those that deny first. */
export function rulesOf(rules: readonly RuleView[], server: string, tool: string): RuleView[] {
  const about = rules.filter(
    ({ rule }) =>
      rule.server === server &&
      rule.kind === "tools" &&
      (rule.effect === "allow"
        ? rule.bound.some((one) => one.tool === tool)
        : rule.patterns.some((pattern) => matches(pattern, tool))),
  );
  return [...about].sort((one, other) => Number(other.rule.effect === "deny") - Number(one.rule.effect === "deny"));
}

/** `*` is any run of characters, `?` exactly one. */
export function matches(pattern: string, name: string): boolean {
  const [signs, characters] = [[...pattern], [...name]];
  // The places in the name up to which the pattern so far can reach.
  let reached = new Set([0]);
  for (const sign of signs) {
    const next = new Set<number>();
    for (const place of reached) {
      if (sign === "*") for (let to = place; to <= characters.length; to += 1) next.add(to);
      else if (place < characters.length && (sign === "?" || sign === characters[place])) next.add(place + 1);
    }
    reached = next;
  }
  return reached.has(characters.length);
}
