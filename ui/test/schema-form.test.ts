import { describe, expect, test } from "vitest";

import { build, fieldsOf, initialValues, type Group, type Value } from "../src/lib/schema-form";

/** Builds after `fill` changed the initial values. */
function built(schema: JsonValue, fill: (values: Value[]) => void = () => {}) {
  const fields = fieldsOf(schema);
  const values = initialValues(fields, schema);
  fill(values);
  return build(fields, values, initialValues(fields, schema));
}

const object = (properties: { [key: string]: JsonValue }, required: string[] = []): JsonValue => ({
  type: "object",
  properties,
  required,
});

describe("what is typed is what is sent", () => {
  test.each([
    ["12345678901234567890123", "integer"],
    ["1.10", "number"],
    ["-0.0", "number"],
    ["1e400", "number"],
    ["9007199254740993", "number"],
  ])("%s survives as typed", (typed, type) => {
    expect(built(object({ n: { type } }), (values) => (values[0] = typed))).toEqual({ json: `{"n":${typed}}` });
  });

  test("texts are quoted, whatever they hold", () => {
    const typed = 'a "b"\n\\ \u2028 <img src=x>';
    const result = built(object({ t: { type: "string" } }), (values) => (values[0] = typed));
    expect(JSON.parse((result as { json: string }).json)).toEqual({ t: typed });
  });

  test("fields keep the schema's order and odd names", () => {
    const schema = object({ b: { type: "string" }, 'a"b': { type: "string" }, __proto__x: { type: "string" } });
    const result = built(schema, (values) => values.fill("v"));
    expect(result).toEqual({ json: '{"b":"v","a\\"b":"v","__proto__x":"v"}' });
  });
});

describe("bad numbers are named, not sent", () => {
  test.each(["", " ", "1,5", "+1", "01", ".5", "1.", "0x10", "NaN", "Infinity", "1_000", "12abc"])("%j", (typed) => {
    const result = built(object({ n: { type: "number" } }, ["n"]), (values) => (values[0] = typed));
    expect(result).toEqual({ problems: new Map([["0", typed.trim() === "" ? "required" : "not_a_number"]]) });
  });

  test.each(["1.0", "1e3", "1.5"])("%s is no whole number", (typed) => {
    const result = built(object({ n: { type: "integer" } }), (values) => (values[0] = typed));
    expect(result).toEqual({ problems: new Map([["0", "not_an_integer"]]) });
  });
});

describe("what is not given is left out", () => {
  test("an untouched form of optional fields is an empty object", () => {
    const schema = object({
      text: { type: "string" },
      number: { type: "number" },
      flag: { type: "boolean" },
      list: { type: "array", items: { type: "string" } },
      group: object({ inner: { type: "string" } }, ["inner"]),
      any: {},
    });
    expect(built(schema)).toEqual({ json: "{}" });
  });

  test("an optional flag has three states", () => {
    const schema = object({ flag: { type: "boolean" } });
    expect(built(schema)).toEqual({ json: "{}" });
    expect(built(schema, (values) => (values[0] = "0"))).toEqual({ json: '{"flag":true}' });
    expect(built(schema, (values) => (values[0] = "1"))).toEqual({ json: '{"flag":false}' });
  });

  test("a required line must be filled, a required long text may be empty", () => {
    const schema = object({ path: { type: "string" }, content: { type: "string" } }, ["path", "content"]);
    expect(built(schema)).toEqual({ problems: new Map([["0", "required"]]) });
    expect(built(schema, (values) => (values[0] = "a"))).toEqual({ json: '{"path":"a","content":""}' });
  });

  test("a group that was touched must be complete", () => {
    const schema = object({ group: object({ a: { type: "string" }, b: { type: "integer" } }, ["b"]) });
    const touched = built(schema, (values) => ((values[0] as Group).fields[0] = "x"));
    expect(touched).toEqual({ problems: new Map([["0.1", "required"]]) });
  });
});

describe("every shape has a field", () => {
  test("defaults are filled in", () => {
    const schema = object({
      text: { type: "string", default: "utf-8" },
      number: { type: "number", default: 2.5 },
      flag: { type: "boolean", default: false },
      mode: { enum: ["replace", "append", 3, null], default: 3 },
      list: { type: "array", items: { type: "integer" }, default: [1, 2] },
    });
    expect(built(schema)).toEqual({ json: '{"text":"utf-8","number":2.5,"flag":false,"mode":3,"list":[1,2]}' });
  });

  test("lists take items of one kind and name the bad one", () => {
    const schema = object({ list: { type: "array", items: { type: "number" } } });
    expect(built(schema, (values) => (values[0] = ["1.10", "2"]))).toEqual({ json: '{"list":[1.10,2]}' });
    expect(built(schema, (values) => (values[0] = ["1", "two"]))).toEqual({
      problems: new Map([["0.1", "not_a_number"]]),
    });
  });

  test("objects are groups down to the second level and JSON below", () => {
    const deep = object({ a: object({ b: object({ c: object({ d: { type: "string" } }) }) }) });
    const [a] = fieldsOf(deep);
    expect(a).toMatchObject({ kind: "group", fields: [{ kind: "group", fields: [{ kind: "json" }] }] });
  });

  test("JSON fields keep their text and refuse what is no JSON", () => {
    const schema = object({ any: { type: "object" } });
    expect(built(schema, (values) => (values[0] = ' {"n": 1.10} '))).toEqual({ json: '{"any":{"n": 1.10}}' });
    expect(built(schema, (values) => (values[0] = "{n: 1}"))).toEqual({ problems: new Map([["0", "not_json"]]) });
  });

  test("a value or null, a reference and a one-part allOf are seen through", () => {
    const schema: JsonValue = {
      type: "object",
      properties: {
        maybe: { anyOf: [{ type: "integer" }, { type: "null" }], default: null },
        many: { type: ["string", "null"] },
        named: { $ref: "#/$defs/Mode" },
        all: { allOf: [{ $ref: "#/$defs/Mode" }] },
        consts: { oneOf: [{ const: "a", title: "First" }, { const: "b" }] },
      },
      $defs: { Mode: { enum: ["x", "y"] } },
    };
    expect(fieldsOf(schema).map((field) => field.kind)).toEqual(["number", "text", "choice", "choice", "choice"]);
    expect(built(schema, (values) => (values[4] = "0"))).toEqual({ json: '{"consts":"a"}' });
  });

  test.each<JsonValue>([null, true, [], {}, { type: "object" }, { properties: null }, { properties: { a: true } }])(
    "the odd schema %j breaks nothing",
    (schema) => {
      expect(built(schema)).toEqual({ json: "{}" });
    },
  );

  test("a schema that refers to itself ends", () => {
    const schema: JsonValue = {
      type: "object",
      properties: { node: { $ref: "#" }, loop: { $ref: "#/$defs/Loop" } },
      $defs: { Loop: { $ref: "#/$defs/Loop" } },
    };
    expect(built(schema)).toEqual({ json: "{}" });
  });
});
