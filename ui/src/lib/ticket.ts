/** A name that nobody else has, for something the window waits for. */
export function newTicket(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
