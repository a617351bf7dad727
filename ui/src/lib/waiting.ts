/** Waiting questions as a person sees them: in one sentence each, and those of one caller together. Pure. */
import type { ApprovalView, ConnectorView, WhoView } from "./bridge";
import { headline, isBuiltInFiles, type Headline } from "./call";
import { changeWords } from "./change";
import * as m from "./messages";
import { callerKey, nameWords, whoWords } from "./who";

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
