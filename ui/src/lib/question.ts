/** A form that an upstream asks a person to fill. Pure. */

import type { ApprovalView } from "./bridge";

/** How long a question shows before its answers work, in milliseconds: nobody answers what they cannot have read. */
export const wakeMs = 700;

/** Changes when the question does, not when its time is extended. */
export function questionKey({ id, question }: ApprovalView): string {
  return JSON.stringify([id, question]);
}

/** The schema with these values as what its members start with. */
export function withDefaults(schema: JsonValue, defaults: JsonValue): JsonValue {
  const root = recordOf(schema);
  const properties = recordOf(root["properties"]);
  const given = recordOf(defaults);
  const filled = Object.entries(properties).map(([name, member]): [string, JsonValue] => {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    return [name, value === undefined ? member : { ...recordOf(member), default: value }];
  });
  return { ...root, properties: Object.fromEntries(filled) };
}

function recordOf(value: JsonValue | undefined): { [key in string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as { [key in string]: JsonValue })
    : {};
}
