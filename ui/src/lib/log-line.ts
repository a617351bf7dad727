import { locale } from "./messages";

/** A line of a log, taken apart for showing. */
export type LogLine = {
  /** Counts on as long as the tab is open. */
  key: number;
  /** As it came, for copying. */
  whole: string;
  /** "09:14:05", in this computer's time; empty where the line has none. */
  time: string;
  text: string;
  /** What the upstream wrote, what this app says about the connection, or that lines are missing. */
  kind: "written" | "session" | "gap";
};

const stamp = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z) /;
const mark = "[session] ";

const clock = new Intl.DateTimeFormat(locale, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** `whole` is `<UTC time> <text>`. */
export function readLine(key: number, whole: string): LogLine {
  const at = stamp.exec(whole);
  const time = at?.[1] === undefined ? "" : clock.format(new Date(at[1]));
  const text = at ? whole.slice(at[0].length) : whole;
  return text.startsWith(mark)
    ? { key, whole, time, text: text.slice(mark.length), kind: "session" }
    : { key, whole, time, text, kind: "written" };
}

/** The newest lines, at most so many and with at most so many characters in all. */
export function newest(lines: LogLine[], mostLines: number, mostCharacters: number): LogLine[] {
  let first = lines.length;
  let characters = 0;
  while (first > 0 && lines.length - first < mostLines) {
    characters += lines[first - 1]?.whole.length ?? 0;
    if (characters > mostCharacters) break;
    first -= 1;
  }
  return lines.slice(first);
}
