/** Times as a person says them. All arguments are Unix milliseconds. */
import * as m from "./messages";

/** Waits shorter than this many milliseconds show nothing, so that quick answers do not flicker. */
export const patienceMs = 500;

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const words = new Intl.RelativeTimeFormat(m.locale, { numeric: "auto", style: "long" });
/** As logs have it, and the same everywhere. */
const hourCycle = "h23";
const clock = new Intl.DateTimeFormat(m.locale, { hour: "2-digit", minute: "2-digit", hourCycle });
const tenths = new Intl.NumberFormat(m.locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const exact = new Intl.DateTimeFormat(m.locale, { dateStyle: "medium", timeStyle: "medium", hourCycle });
const date = new Intl.DateTimeFormat(m.locale, { dateStyle: "medium", timeStyle: "short", hourCycle });

/** "just now", "2 minutes ago", "yesterday"; a time in the future (a clock that was set back) counts as now. */
export function ago(at: number, now: number): string {
  const age = Math.max(0, now - at);
  if (age < minute) return m.just_now();
  if (age < hour) return words.format(-Math.floor(age / minute), "minute");
  if (age < day) return words.format(-Math.floor(age / hour), "hour");
  if (age < 30 * day) return words.format(-Math.floor(age / day), "day");
  if (age < 365 * day) return words.format(-Math.floor(age / (30 * day)), "month");
  return words.format(-Math.floor(age / (365 * day)), "year");
}

/** "09:14" within a day of now, else with the date. */
export function since(at: number, now: number): string {
  return Math.abs(now - at) < day ? clock.format(at) : date.format(at);
}

/** The date with the time to the second. */
export function dayTime(at: number): string {
  return exact.format(at);
}

/** Whole seconds until then, never negative. */
export function secondsUntil(at: number, now: number): number {
  return Math.max(0, Math.ceil((at - now) / second));
}

/** "8 s", and "5 min" for what is far away, each in one piece; never negative. */
export function until(at: number, now: number): string {
  const seconds = secondsUntil(at, now);
  return seconds < 100 ? m.time_s({ amount: seconds }) : m.time_min({ amount: Math.ceil(seconds / 60) });
}

/** "1:42" until then, never negative. */
export function countdown(at: number, now: number): string {
  const seconds = secondsUntil(at, now);
  return m.time_clock({ minutes: Math.floor(seconds / 60), seconds: String(seconds % 60).padStart(2, "0") });
}

/** "3 ms", "1.2 s". */
export function duration(ms: number): string {
  return ms < second ? m.time_ms({ amount: Math.round(ms) }) : m.time_s({ amount: tenths.format(ms / second) });
}
