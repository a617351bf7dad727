/** Waiting questions as a person sees them: in one sentence each, and those of one caller together. Pure. */
import type { ApprovalView, ArgumentView, ConnectorView, WhoView } from "./bridge";
import { beginning, headline, isBuiltInFiles, type Headline } from "./call";
import { changeWords } from "./change";
import * as m from "./messages";
import { callerKey, nameWords, whoWords } from "./who";

/** Arguments that a row of a list shows. */
const mostInRow = 2;

/** `who` is null of a question that stands alone. */
export type Group = { key: string; who: WhoView | null; approvals: ApprovalView[] };

/** In the order of the oldest question of each; what an upstream asks always stands alone. */
export function groupsOf(waiting: readonly ApprovalView[]): Group[] {
  const groups: Group[] = [];
  for (const approval of waiting) {
    const who = callerOf(approval);
    const key = who === null ? approval.id : callerKey(who);
    const group = groups.find((one) => one.key === key);
    if (group) group.approvals.push(approval);
    else groups.push({ key, who, approvals: [approval] });
  }
  return groups.map((one) => (one.approvals.length > 1 ? one : { ...one, who: null }));
}

export function titleOf(approval: ApprovalView, connector: ConnectorView | undefined): Headline {
  const { question } = approval;
  const name = nameWords(approval.server_name);
  switch (question.kind) {
    case "elicitation":
      return { title: m.asks_line({ name }), object: null };
    case "call":
      return headline(question.call, isBuiltInFiles(connector));
    case "manage":
      return { title: changeWords(question.change, whoWords(question.who), name).title, object: null };
  }
}

/** `connector` is its name; null where all rows are about the same one, or the title names it. */
export type Row = Headline & { connector: string | null };

/** One of several questions of the same caller: without the caller, and with what tells it from the others. */
export function rowOf(approval: ApprovalView, all: readonly ApprovalView[], connector: ConnectorView | undefined): Row {
  const differ = approval.question.kind === "call" && all.some(({ server }) => server !== approval.server);
  return { ...wordsOf(approval, all, connector), connector: differ ? nameWords(approval.server_name) : null };
}

function wordsOf(approval: ApprovalView, all: readonly ApprovalView[], connector: ConnectorView | undefined): Headline {
  const asked = toolCall(approval);
  if (asked === null || isBuiltInFiles(connector)) return titleOf(approval, connector);
  const siblings = all
    .filter(({ server }) => server === approval.server)
    .map(toolCall)
    .filter((other) => other?.tool === asked.tool);
  const differs = ({ name, value }: ArgumentView) =>
    siblings.some((other) => other?.given.find((one) => one.name === name)?.value !== value);
  const different = asked.given.filter(differs);
  const shown = (different.length > 0 ? different : asked.given).slice(0, mostInRow);
  const object = shown.map((one) => `${one.name}: ${beginning(one)}`).join(" · ");
  return { title: nameWords(asked.title), object: object === "" ? null : object };
}

function toolCall({ question }: ApprovalView): { tool: string; title: string; given: ArgumentView[] } | null {
  if (question.kind !== "call" || question.call.subject.subject !== "tool") return null;
  const { subject, arguments: given } = question.call;
  return { tool: subject.tool, title: subject.title ?? subject.tool, given };
}

/** How many wait that ask for exactly the same, this one among them. */
export function sameOf({ question }: ApprovalView): number {
  switch (question.kind) {
    case "call":
      return question.call.same + 1;
    case "elicitation":
    case "manage":
      return 1;
  }
}

/** Whoever asks; null of what an upstream asks. */
export function callerOf({ question }: ApprovalView): WhoView | null {
  switch (question.kind) {
    case "elicitation":
      return null;
    case "call":
      return question.call.who;
    case "manage":
      return question.who;
  }
}
