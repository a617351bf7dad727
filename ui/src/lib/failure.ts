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

/** Runs a command; the sentence of its failure, or null when it worked. */
export async function failureOf(command: () => Promise<unknown>): Promise<string | null> {
  try {
    await command();
    return null;
  } catch (cause) {
    return sentence(cause);
  }
}
