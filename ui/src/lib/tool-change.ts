/** What a tool takes, and what changed in it since it was approved, in words. Pure; names in it are the upstream's own. */
import type { ToolHints, ToolText } from "./bridge";
import * as m from "./messages";
import { shortened } from "./plain";
import { claims } from "./who";

/** Of more than this many the rest is counted. */
const mostNamed = 8;
const longestName = 60;

type Schema = { [key in string]?: JsonValue };

/** What a tool takes in one sentence; null where its description is of a kind that has no words here. */
export function takesWords({ input_schema }: ToolText): string | null {
  const schema = read(input_schema);
  if (schema === null) return null;
  const known = propertiesOf(schema);
  const names = Object.keys(known);
  if (names.length === 0) return Object.keys(schema).every((key) => plainKeys.has(key)) ? m.takes_nothing() : null;
  const needed = neededIn(schema);
  return m.takes({
    what: listed(
      names.map((name) => {
        const given = { name: short(name), kind: kindWords(known[name]) };
        return needed.has(name) ? m.takes_one(given) : m.takes_optional(given);
      }),
    ),
  });
}

/**
 * Sentences about all that differs beyond title and description: whatever changed, at least one of them says so. What
 * may do more harm than before comes first.
 */
export function changeSentences(before: ToolText, now: ToolText): string[] {
  return [
    ...hintSentences(before.hints, now.hints),
    ...inputSentences(before.input_schema, now.input_schema),
    ...outputSentences(before.output_schema, now.output_schema),
    ...(before.also === now.also ? [] : [m.differs_also()]),
  ];
}

function hintSentences(before: ToolHints, now: ToolHints): string[] {
  const said = claims(now);
  if (claims(before).join() === said.join()) return [];
  const looser = [
    ...(before.read_only === true && now.read_only !== true ? [m.differs_changes()] : []),
    ...(before.destructive === false && now.destructive !== false ? [m.differs_destroys()] : []),
    ...(before.open_world === false && now.open_world !== false ? [m.differs_reaches()] : []),
    ...(before.idempotent === true && now.idempotent !== true && now.read_only !== true ? [m.differs_repeats()] : []),
  ];
  return [...looser, m.differs_claims({ claims: said.join(", ") })];
}

function inputSentences(before: string, now: string): string[] {
  if (before === now) return [];
  const [old, new_] = [read(before), read(now)];
  if (old === null || new_ === null) return [m.differs_rules()];
  const [had, has] = [propertiesOf(old), propertiesOf(new_)];
  const [neededBefore, needs] = [neededIn(old), neededIn(new_)];
  const names = Object.keys(has);
  const isNew = (name: string) => !Object.hasOwn(had, name);
  const withKind = (name: string) => m.takes_one({ name: short(name), kind: kindWords(has[name]) });

  const about = (say: (p: { what: string }) => string, which: string[]) =>
    which.length > 0 ? [say({ what: listed(which) })] : [];
  const sentences = [
    ...about(m.differs_needs, [...needs].filter((name) => !neededBefore.has(name)).map(withKind)),
    ...about(m.differs_takes, names.filter((name) => isNew(name) && !needs.has(name)).map(withKind)),
    ...about(
      m.differs_no_longer_takes,
      Object.keys(had)
        .filter((name) => !Object.hasOwn(has, name))
        .map(short),
    ),
    ...about(
      m.differs_no_longer_needs,
      [...neededBefore].filter((name) => !needs.has(name) && Object.hasOwn(has, name)).map(short),
    ),
    ...names.filter((name) => !isNew(name) && !same(had[name], has[name])).map((name) => ofOne(name, had, has)),
  ];
  const { properties: _had, required: _needed, ...rulesBefore } = old;
  const { properties: _has, required: _needs, ...rules } = new_;
  return sentences.length === 0 || !same(rulesBefore, rules) ? [...sentences, m.differs_rules()] : sentences;
}

function outputSentences(before: string | null, now: string | null): string[] {
  if (before === now) return [];
  if (before === null) return [m.differs_answer_new()];
  return [now === null ? m.differs_answer_gone() : m.differs_answer()];
}

function ofOne(name: string, had: Schema, has: Schema): string {
  const [before, now] = [kindWords(had[name]), kindWords(has[name])];
  if (before === now) return m.differs_inside({ name: short(name) });
  return m.differs_kind({ name: short(name), before, now });
}

/** A property's kind as a person would say it. */
function kindWords(property: JsonValue | undefined): string {
  const schema = asSchema(property);
  if (schema === null) return m.kind_any();
  const options = schema["enum"];
  if (Array.isArray(options)) return m.kind_choice({ count: options.length });
  switch (schema["type"]) {
    case "string":
      return m.kind_text();
    case "integer":
    case "number":
      return m.kind_number();
    case "boolean":
      return m.kind_yes_no();
    case "array":
      return m.kind_list();
    case "object":
      return m.kind_group();
    default:
      return m.kind_any();
  }
}

/** Members of a schema that allow nothing beyond what is listed in words. */
const plainKeys: ReadonlySet<string> = new Set(["$schema", "type", "properties", "required", "title"]);

function read(text: string): Schema | null {
  try {
    return asSchema(JSON.parse(text) as JsonValue);
  } catch {
    return null;
  }
}

function propertiesOf(schema: Schema): Schema {
  return asSchema(schema["properties"]) ?? {};
}

function neededIn(schema: Schema): ReadonlySet<string> {
  const required = schema["required"];
  return new Set(Array.isArray(required) ? required.filter((name) => typeof name === "string") : []);
}

function asSchema(value: JsonValue | undefined): Schema | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
}

/** The order of members is no difference. */
function same(one: JsonValue | undefined, other: JsonValue | undefined): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value: JsonValue | undefined): JsonValue | undefined {
  if (Array.isArray(value)) return value.map((item) => sorted(item) ?? null);
  const schema = asSchema(value);
  if (schema === null) return value;
  return Object.fromEntries(
    Object.keys(schema)
      .sort()
      .map((key) => [key, sorted(schema[key])]),
  );
}

function listed(names: string[]): string {
  const shown = names.slice(0, mostNamed);
  const left = names.length - shown.length;
  return [...shown, ...(left > 0 ? [m.takes_more({ count: left })] : [])].join(", ");
}

const short = (name: string) => shortened(name, longestName);
