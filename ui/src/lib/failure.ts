import * as m from "./messages";

/** The sentence of a rejected command, for display beside whatever was clicked; never empty. */
export function sentence(cause: unknown): string {
  if (
    typeof cause === "object" &&
    cause !== null &&
    "error" in cause &&
    typeof cause.error === "string" &&
    cause.error
  ) {
    return cause.error;
  }
  return cause instanceof Error && cause.message ? cause.message : m.failure_unknown();
}
