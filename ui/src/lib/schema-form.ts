/**
 * A tool's input schema as a form, and the form as exact JSON text.
 *
 * Pure. What a person types as a number goes into the text as typed; what the form cannot express becomes a field of
 * JSON text. Constraints beyond the types are left to the upstream, which knows them best.
 */
import { isIntegerText, isNumberText, jsonProblem } from "./json-text";

type Common = { name: string; title: string | null; description: string; required: boolean };

/** A value on one line, in a form or as an item of a list. */
export type Scalar =
  | { kind: "text"; long: boolean }
  | { kind: "number"; integer: boolean }
  | { kind: "choice"; options: { label: string; json: string }[] };

export type Field = Common &
  (Scalar | { kind: "list"; item: Scalar } | { kind: "group"; fields: Field[] } | { kind: "json" });

/**
 * What stands in a field: text as typed (for a choice the place of the option; "" = not given), the items of a list,
 * the fields of a group in their order.
 */
export type Value = string | string[] | Group;
export type Group = { fields: Value[] };

export type Problem = "required" | "not_a_number" | "not_an_integer" | "not_json";

/** Either the JSON text of the object, or the problems by path (`"2"`, `"0.1"`: places of fields and items). */
export type Built = { json: string } | { problems: ReadonlyMap<string, Problem> };

type Schema = { [key in string]?: JsonValue };

/** Groups below the root; deeper objects are JSON text. */
const maxGroupDepth = 2;
const maxReferences = 16;
const longNames = /^(?:content|contents|text|body|message|prompt|query|sql|code|script|html|markdown|description)$/i;

export function fieldsOf(schema: JsonValue): Field[] {
  const root = asSchema(schema);
  return root ? objectFields(root, root, 0) : [];
}

export function initialValues(fields: Field[], schema: JsonValue): Value[] {
  const root = asSchema(schema) ?? {};
  return fields.map((field) => initial(field, property(root, field.name, root), root));
}

/**
 * The object's JSON text without spaces. An empty field is left out, or missed where it is required; only a long text
 * may be empty on purpose (a file's content).
 */
export function build(fields: Field[], values: Value[], initials: Value[]): Built {
  const problems = new Map<string, Problem>();
  const json = objectText(fields, values, initials, "", problems);
  return problems.size > 0 ? { problems } : { json };
}

function objectText(
  fields: Field[],
  values: Value[],
  initials: Value[],
  path: string,
  problems: Map<string, Problem>,
): string {
  const members: string[] = [];
  fields.forEach((field, index) => {
    const text = fieldText(field, values[index] ?? "", initials[index] ?? "", `${path}${index}`, problems);
    if (text !== null) members.push(`${JSON.stringify(field.name)}:${text}`);
  });
  return `{${members.join(",")}}`;
}

/** Null where the member is left out or has a problem. */
function fieldText(
  field: Field,
  value: Value,
  initialValue: Value,
  path: string,
  problems: Map<string, Problem>,
): string | null {
  switch (field.kind) {
    case "text":
    case "number":
    case "choice":
      return scalarText(field, value as string, field.required, path, problems);
    case "list": {
      const items = value as string[];
      if (items.length === 0 && !field.required) return null;
      const texts = items.map((item, index) => scalarText(field.item, item, true, `${path}.${index}`, problems));
      return `[${texts.join(",")}]`;
    }
    case "group": {
      const { fields } = value as Group;
      if (!field.required && JSON.stringify(value) === JSON.stringify(initialValue)) return null;
      return objectText(field.fields, fields, (initialValue as Group).fields, `${path}.`, problems);
    }
    case "json": {
      const text = (value as string).trim();
      if (text === "") return field.required ? problem(path, "required", problems) : null;
      return jsonProblem(text) ? problem(path, "not_json", problems) : text;
    }
  }
}

function scalarText(
  scalar: Scalar,
  typed: string,
  required: boolean,
  path: string,
  problems: Map<string, Problem>,
): string | null {
  switch (scalar.kind) {
    case "text":
      if (typed !== "" || (required && scalar.long)) return JSON.stringify(typed);
      return required ? problem(path, "required", problems) : null;
    case "number": {
      const text = typed.trim();
      if (text === "") return required ? problem(path, "required", problems) : null;
      if (scalar.integer && !isIntegerText(text)) return problem(path, "not_an_integer", problems);
      return isNumberText(text) ? text : problem(path, "not_a_number", problems);
    }
    case "choice": {
      const option = typed === "" ? undefined : scalar.options[Number(typed)];
      if (option) return option.json;
      return required ? problem(path, "required", problems) : null;
    }
  }
}

function problem(path: string, kind: Problem, problems: Map<string, Problem>): null {
  problems.set(path, kind);
  return null;
}

function objectFields(schema: Schema, root: Schema, depth: number): Field[] {
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.keys(asSchema(schema["properties"]) ?? {}).map((name) => {
    const own = property(schema, name, root);
    return {
      name,
      title: typeof own["title"] === "string" ? own["title"] : null,
      description: typeof own["description"] === "string" ? own["description"] : "",
      required: required.includes(name),
      ...shapeOf(own, name, root, depth),
    };
  });
}

function shapeOf(
  schema: Schema,
  name: string,
  root: Schema,
  depth: number,
): Scalar | { kind: "list"; item: Scalar } | { kind: "group"; fields: Field[] } | { kind: "json" } {
  const scalar = scalarOf(schema, name);
  if (scalar) return scalar;
  const type = typeOf(schema);
  if (type === "array") {
    const items = asSchema(schema["items"]);
    const item = items && scalarOf(resolve(items, root), "");
    return item ? { kind: "list", item } : { kind: "json" };
  }
  if (type === "object" && depth < maxGroupDepth && asSchema(schema["properties"])) {
    const fields = objectFields(schema, root, depth + 1);
    if (fields.length > 0) return { kind: "group", fields };
  }
  return { kind: "json" };
}

function scalarOf(schema: Schema, name: string): Scalar | null {
  const options = optionsOf(schema);
  if (options) return { kind: "choice", options };
  switch (typeOf(schema)) {
    case "string":
      return { kind: "text", long: longNames.test(name) };
    case "integer":
      return { kind: "number", integer: true };
    case "number":
      return { kind: "number", integer: false };
    case "boolean":
      return { kind: "choice", options: [true, false].map(option) };
    default:
      return null;
  }
}

function optionsOf(schema: Schema): { label: string; json: string }[] | null {
  if ("const" in schema) return isScalar(schema["const"]) ? [option(schema["const"])] : null;
  const listed = schema["enum"];
  if (Array.isArray(listed) && listed.length > 0 && listed.every(isScalar)) {
    const names = Array.isArray(schema["enumNames"]) ? schema["enumNames"] : [];
    return listed.map((value, index) => {
      const name = names[index];
      return typeof name === "string" ? { ...option(value), label: name } : option(value);
    });
  }
  const either = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(either) || either.length === 0) return null;
  const options: { label: string; json: string }[] = [];
  for (const branch of either) {
    const one = asSchema(branch);
    if (!one || !("const" in one) || !isScalar(one["const"])) return null;
    const { label, json } = option(one["const"]);
    options.push({ label: typeof one["title"] === "string" ? one["title"] : label, json });
  }
  return options;
}

function option(value: JsonValue | undefined): { label: string; json: string } {
  const json = JSON.stringify(value ?? null);
  return { label: typeof value === "string" ? value : json, json };
}

function initial(field: Field, schema: Schema, root: Schema): Value {
  const given = schema["default"];
  switch (field.kind) {
    case "text":
    case "number":
    case "choice":
      return initialScalar(field, given);
    case "list":
      return Array.isArray(given) ? given.map((item) => initialScalar(field.item, item)) : [];
    case "group":
      return { fields: field.fields.map((inner) => initial(inner, property(schema, inner.name, root), root)) };
    case "json":
      return given === undefined || given === null ? "" : JSON.stringify(given, null, 2);
  }
}

function initialScalar(scalar: Scalar, given: JsonValue | undefined): string {
  switch (scalar.kind) {
    case "text":
      return typeof given === "string" ? given : "";
    case "number":
      return typeof given === "number" ? JSON.stringify(given) : "";
    case "choice": {
      const place = scalar.options.findIndex((known) => given !== undefined && known.json === JSON.stringify(given));
      return place < 0 ? "" : String(place);
    }
  }
}

function property(schema: Schema, name: string, root: Schema): Schema {
  const properties = asSchema(schema["properties"]) ?? {};
  const own = Object.hasOwn(properties, name) ? asSchema(properties[name]) : null;
  return own ? resolve(own, root) : {};
}

/** Follows references inside the schema, and sees through "this or null" and one-part `allOf`. */
function resolve(schema: Schema, root: Schema): Schema {
  let current = schema;
  for (let step = 0; step < maxReferences; step += 1) {
    const inner = referenced(current, root) ?? onlyBranch(current);
    if (!inner) return current;
    const { $ref: _ref, anyOf: _anyOf, oneOf: _oneOf, allOf: _allOf, ...outer } = current;
    current = { ...inner, ...outer };
  }
  return {};
}

function referenced(schema: Schema, root: Schema): Schema | null {
  const reference = schema["$ref"];
  if (typeof reference !== "string" || !reference.startsWith("#/")) return null;
  let found: JsonValue | undefined = root;
  for (const part of reference.slice(2).split("/")) {
    const key = part.replace(/~1/g, "/").replace(/~0/g, "~");
    const place: Schema | null = asSchema(found);
    found = place && Object.hasOwn(place, key) ? place[key] : undefined;
  }
  return asSchema(found);
}

function onlyBranch(schema: Schema): Schema | null {
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    const branches = schema[key];
    if (!Array.isArray(branches)) continue;
    const real = branches.map(asSchema).filter((branch) => branch !== null && branch["type"] !== "null");
    const isPlain = real.length === 1 && (branches.length > 1 || key === "allOf");
    if (isPlain && real[0]) return real[0];
  }
  return null;
}

function typeOf(schema: Schema): string | null {
  const type = schema["type"];
  if (typeof type === "string") return type;
  if (Array.isArray(type)) {
    const real = type.filter((one) => one !== "null");
    return real.length === 1 && typeof real[0] === "string" ? real[0] : null;
  }
  return type === undefined && asSchema(schema["properties"]) ? "object" : null;
}

function isScalar(value: JsonValue | undefined): boolean {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function asSchema(value: JsonValue | undefined): Schema | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
}
