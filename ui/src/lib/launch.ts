/** What a connector would run or contact, row by row, and what to look at twice. Pure. */
import type { EntryOrigin, Given, LaunchReview, LaunchShown, LaunchWhy, StandsOut } from "./bridge";
import { commandLine } from "./entry";
import * as m from "./messages";
import { plain } from "./plain";
import { isKeyInPlain } from "./plain-keys";
import { whoWords } from "./who";

/** `key` is the same for the same thing of two launches. `isSaid` where the text is in our own words. */
export type Row = {
  key: string;
  label: string;
  text: string;
  notes: string[];
  isSaid: boolean;
  /** The name of a value that looks like a key, and is shown on a click alone. */
  hides: string | null;
};

export type ComparedRow = Row & {
  /** What was approved before where that was another; null where there was nothing. */
  before: string | null | "same";
  isGone: boolean;
};

export function launchRows(shown: LaunchShown): Row[] {
  switch (shown.kind) {
    case "run":
      return [
        row("runs", m.effect_runs(), commandLine(shown.command_line)),
        {
          ...row("program", m.launch_program(), shown.program ?? m.launch_no_program()),
          isSaid: shown.program === null,
        },
        ...(shown.cwd === null ? [] : [row("folder", m.effect_folder(), shown.cwd)]),
        ...(shown.env_file === null ? [] : [row("env_file", m.launch_env_file(), shown.env_file)]),
        ...shown.env.map((given) => givenRow("env", given)),
      ];
    case "contact":
      return [
        row("contacts", m.effect_contacts(), shown.url),
        row("host", m.launch_host(), shown.host),
        { ...row("sign_in", m.launch_sign_in(), authWords(shown.auth)), isSaid: true },
        ...shown.sign_in.map((setting) => row(`setting ${nameOf(setting)}`, m.launch_sign_in_setting(), setting)),
        ...shown.headers.map((given) => givenRow("header", given)),
      ];
  }
}

/** The rows of now, each with what it was before, and those that are gone. */
export function comparedRows({ now, before }: Pick<LaunchReview, "now" | "before">): ComparedRow[] {
  const rows = launchRows(now);
  if (before === null) return rows.map((one) => ({ ...one, before: "same", isGone: false }));
  const earlier = launchRows(before);
  const was = (key: string) => earlier.find((one) => one.key === key);
  const whole = ({ text, notes }: Row) => [text, ...notes].join("\n");
  const compared = rows.map((one): ComparedRow => {
    const old = was(one.key);
    if (old && whole(old) === whole(one)) return { ...one, before: "same", isGone: false };
    return {
      ...one,
      text: whole(one),
      notes: [],
      before: old ? whole(old) : null,
      isGone: false,
      hides: one.hides ?? old?.hides ?? null,
    };
  });
  const gone = earlier.filter(({ key }) => !rows.some((one) => one.key === key));
  return [...compared, ...gone.map((one) => ({ ...one, text: "", notes: [], before: whole(one), isGone: true }))];
}

export function standsOutWords(one: StandsOut): string {
  switch (one.what) {
    case "inline_code":
      return m.stands_inline_code({ program: plain(one.program) });
    case "other_rights":
      return m.stands_other_rights({ program: plain(one.program) });
    case "wide_folder":
      return m.stands_wide_folder({ argument: plain(one.argument) });
    case "loader_variable":
      return m.stands_loader_variable({ name: plain(one.name) });
    case "unpinned":
      return m.stands_unpinned({ package: plain(one.package) });
    case "downloads":
      return m.stands_downloads({ runner: plain(one.runner) });
    case "missing_pkce":
      return m.stands_missing_pkce();
    case "not_encrypted":
      return m.stands_not_encrypted();
    case "not_found":
      return m.stands_not_found({ program: plain(one.program) });
  }
}

/** Whether a yes needs a look of its own: what is usual for many good connectors does not. */
export function isSerious(one: StandsOut): boolean {
  switch (one.what) {
    case "inline_code":
    case "other_rights":
    case "wide_folder":
    case "loader_variable":
    case "missing_pkce":
    case "not_encrypted":
      return true;
    case "unpinned":
    case "downloads":
    case "not_found":
      return false;
  }
}

export function whyWords(why: LaunchWhy, name: string): string {
  switch (why.why) {
    case "new":
      return m.launch_new({ name });
    case "changed":
      return m.launch_changed({ name });
    case "turned_on":
      return m.launch_turned_on({ name });
    case "tools_shown":
      return m.launch_tools_shown({ name, count: why.tools.length });
  }
}

export function originWords(origin: EntryOrigin): string {
  switch (origin.from) {
    case "file":
      return m.launch_from_file();
    case "caller":
      return m.launch_from_caller({ who: whoWords(origin.who) });
  }
}

function row(key: string, label: string, text: string): Row {
  return { key, label, text, notes: [], isSaid: false, hides: null };
}

function givenRow(kind: "env" | "header", { name, template, from_environment, secrets }: Given): Row {
  const notes = [
    ...secrets.map((secret) => m.given_secret({ name: secret })),
    ...from_environment.map(([variable, value]) =>
      value === null ? m.given_unset({ name: variable }) : m.given_variable({ name: variable, value }),
    ),
  ];
  const label = kind === "env" ? m.launch_receives() : m.effect_headers();
  const hides = isKeyInPlain(name, template) ? name : null;
  return { key: `${kind} ${name}`, label, text: `${name} = ${template}`, notes, isSaid: false, hides };
}

/** By what it is let in. */
export function authWords(auth: string | null): string {
  switch (auth) {
    case null:
      return m.auth_when_asked();
    case "none":
      return m.auth_none();
    case "token":
      return m.auth_token();
    case "oauth":
      return m.auth_oauth();
    default:
      return auth;
  }
}

function nameOf(setting: string): string {
  return setting.split(":")[0] ?? setting;
}
