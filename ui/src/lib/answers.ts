/** The person's answers to calls, each told with how it is taken back. */
import type { ApprovalView, AskedSubject, CallQuestion, RuleDraft } from "./bridge";
import * as m from "./messages";
import { rpc, type CallReply } from "./rpc";
import { hasConditions } from "./rule";
import { ruleList } from "./rule-list.svelte";
import { store } from "./store.svelte";
import { telling, type Said } from "./telling.svelte";
import { callerKey, nameWords, whoWords } from "./who";

/** What an answer is about, in a few words. */
export function subjectWords(subject: AskedSubject): string {
  switch (subject.subject) {
    case "tool":
      return nameWords(subject.tool);
    case "resource":
      return nameWords(subject.uri);
    case "prompt":
      return nameWords(subject.name);
  }
}

export async function answerCall(
  { id, server }: ApprovalView,
  call: CallQuestion,
  reply: CallReply,
  alsoSame: boolean,
): Promise<void> {
  const about = { what: subjectWords(call.subject), who: whoWords(call.who) };
  const since = Date.now();
  const makesRule = reply === "until_quit" || reply === "block";
  await telling.answering([id], makesRule || alsoSame, () => rpc.answerCall(id, reply, alsoSame));
  switch (reply) {
    case "once":
      telling.say(alsoSame ? m.said_same({ ...about, count: call.same + 1 }) : m.said_once(about));
      return;
    case "until_quit":
      telling.say(m.said_until_quit(about), await undoRule(server, "allow", since));
      return;
    case "deny":
      telling.say(m.said_denied(about));
      return;
    case "block":
      telling.say(m.said_blocked(about), await undoRule(server, "deny", since));
      return;
  }
}

/** `rule` is the JSON text of a whole rule. */
export async function alwaysAllow({ id, server }: ApprovalView, call: CallQuestion, rule: string): Promise<void> {
  const since = Date.now();
  await telling.answering([id], true, () => rpc.alwaysAllow(id, rule));
  const words = hasConditions(JSON.parse(rule) as RuleDraft) ? m.said_always_if : m.said_always;
  telling.say(words({ what: subjectWords(call.subject) }), await undoRule(server, "allow", since));
}

/** Lets what nobody answered go once when it is asked again. */
export async function allowNextTime({ id }: ApprovalView, { subject, who }: CallQuestion): Promise<void> {
  await rpc.allowNextTime(id);
  telling.say(m.said_next_time({ what: subjectWords(subject), who: whoWords(who) }));
}

export async function stopAsking({ id }: ApprovalView, who: CallQuestion["who"]): Promise<void> {
  await telling.answering([id], true, () => rpc.stopAsking(id));
  telling.say(m.said_stopped({ who: whoWords(who) }), async () => {
    const muted = store.snapshot?.trust.muted.find((one) => callerKey(one.who) === callerKey(who));
    if (muted) await rpc.letAsk(muted.id);
  });
}

/** Takes back the rule that was just made; null where it cannot be told which. */
async function undoRule(server: string, effect: "allow" | "deny", since: number): Promise<Said["undo"]> {
  await ruleList.refresh();
  // The newest comes first.
  const made = ruleList.rules?.find(({ rule }) => rule.origin === "person");
  if (made?.rule.server !== server || made.rule.effect !== effect || made.rule.made_at < since) return null;
  return async () => {
    await rpc.withdrawRule(made.rule.id);
    await ruleList.refresh();
  };
}
