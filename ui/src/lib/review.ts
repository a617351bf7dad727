/** What waits for the person's look, sorted as the screen shows it. Pure. */
import type { LaunchReview, PromptText, Reviews, ToolReview, ToolsReview, ToolState } from "./bridge";
import * as m from "./messages";
import { ago } from "./time";

/** How many things there are to decide; the tools of a connector are one. */
export function reviewCount({ launches, tools, proposals, asleep }: Reviews): number {
  return launches.length + tools.length + proposals.length + asleep.length;
}

/** What the first start with a file shows in one list; a single one is a card like any other. */
export function firstStart({ launches }: Reviews): LaunchReview[] {
  const found = launches.filter(({ why, came_from }) => why.why === "new" && came_from.from === "file");
  return found.length > 1 ? found : [];
}

/** Whether something about it looks dangerous, so that it is never approved together with others. */
export function isFlagged({ state, findings }: Pick<ToolReview, "state" | "findings">): boolean {
  return state === "held" || findings.length > 0;
}

export function harmless({ tools }: ToolsReview): ToolReview[] {
  return tools.filter((tool) => !isFlagged(tool));
}

export type ToolGroup = { state: ToolState; title: string; tools: ToolReview[] };

/** What is approved together, by how it stands to what was approved; groups without a tool are left out. */
export function groupsOfTools(tools: readonly ToolReview[]): ToolGroup[] {
  const titles: [ToolState, string][] = [
    ["pending", m.group_new()],
    ["changed", m.group_changed()],
    ["reworded", m.group_reworded()],
  ];
  return titles
    .map(([state, title]) => ({ state, title, tools: tools.filter((tool) => tool.state === state) }))
    .filter((group) => group.tools.length > 0);
}

/** Such as "1 looks dangerous · 3 changed · 8 new". */
export function countsOf({ tools }: ToolsReview): string {
  const flagged = tools.filter(isFlagged).length;
  const clean = (state: ToolState) => tools.filter((tool) => tool.state === state && !isFlagged(tool)).length;
  const [changed, reworded, added] = [clean("changed"), clean("reworded"), clean("pending")];
  return [
    ...(flagged > 0 ? [m.count_flagged({ count: flagged })] : []),
    ...(changed > 0 ? [m.count_changed({ count: changed })] : []),
    ...(reworded > 0 ? [m.count_reworded({ count: reworded })] : []),
    ...(added > 0 ? [m.count_new({ count: added })] : []),
  ].join(" · ");
}

/** A text of what is reviewed, and what was approved of it; null where there was, or is, none. */
export type ReviewedPart = { label: string; before: string | null; now: string | null; by?: "word" | "line" };

/** How something stands to what was approved, and since when that was. */
export function standsWords(state: string, approvedAt: number | undefined, now: number): string {
  return [state, ...(approvedAt === undefined ? [] : [m.approved_when({ when: ago(approvedAt, now) })])].join(" · ");
}

/** Whether it is neither offered nor run before the person has looked at it. */
export function isHeldBack(state: ToolState): boolean {
  switch (state) {
    case "approved":
    case "reworded":
      return false;
    case "pending":
    case "held":
    case "changed":
      return true;
  }
}

/** What a prompt takes, a line each. */
export function argumentWords({ arguments: all }: PromptText): string {
  const named = (name: string, required: boolean) =>
    required ? m.argument_needed({ name }) : m.argument_optional({ name });
  return all
    .map(({ name, description, required }) => [named(name, required), ...(description ? [description] : [])].join(": "))
    .join("\n");
}

export function toolStateWords(state: ToolState): string {
  switch (state) {
    case "approved":
      return m.tool_approved();
    case "reworded":
      return m.tool_reworded();
    case "pending":
      return m.tool_pending();
    case "held":
      return m.tool_held();
    case "changed":
      return m.tool_changed();
  }
}
