/** What to look at twice before a yes, as a list shows it. Pure. */
import type { FindingView, StandsOut } from "./bridge";
import { isSerious, standsOutWords } from "./launch";
import { plain } from "./plain";

export type Concern = {
  sentence: string;
  /** The words that it is about, as they were written; empty where there are none to show. */
  excerpt: string;
  isSerious: boolean;
};

/** What looks dangerous in somebody else's words. */
export function concernsFound(findings: readonly FindingView[]): Concern[] {
  return findings.map(({ sentence, excerpt }) => ({ sentence: plain(sentence), excerpt, isSerious: true }));
}

/** What stands out of something that would run or be contacted. */
export function concernsOfLaunch(standsOut: readonly StandsOut[]): Concern[] {
  return standsOut.map((one) => ({ sentence: standsOutWords(one), excerpt: "", isSerious: isSerious(one) }));
}
