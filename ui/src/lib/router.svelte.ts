/** Where the window is: the address after `#`, read into one closed set of places. */

export const tabs = ["overview", "tools", "activity", "log", "settings"] as const;
export type Tab = (typeof tabs)[number];

export type Route =
  | { screen: "connectors" }
  | { screen: "add"; by: "paste" | "hand" }
  | { screen: "detail"; id: string; tab: Tab; tool: string | null }
  | { screen: "approvals" }
  | { screen: "activity" }
  /** `id` is the connector whose review is wanted. */
  | { screen: "review"; id: string | null }
  | { screen: "assistants" }
  | { screen: "settings" };

/** Unknown addresses lead to the list. */
export function parseRoute(hash: string): Route {
  const [first, ...rest] = hash
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decode);
  switch (first) {
    case "add":
      return { screen: "add", by: rest[0] === "hand" ? "hand" : "paste" };
    case "approvals":
      return { screen: "approvals" };
    case "activity":
      return { screen: "activity" };
    case "review":
      return { screen: "review", id: rest[0] || null };
    case "assistants":
      return { screen: "assistants" };
    case "settings":
      return { screen: "settings" };
    case "connectors": {
      const [id, tab, tool] = rest;
      if (!id) return { screen: "connectors" };
      return { screen: "detail", id, tab: tabs.find((known) => known === tab) ?? "overview", tool: tool || null };
    }
    default:
      return { screen: "connectors" };
  }
}

export function connectorHref(id: string, tab?: Tab, tool?: string): string {
  return ["#/connectors", id, tab, tool]
    .filter((part) => part !== undefined)
    .map((part, index) => (index === 0 ? part : encodeURIComponent(part)))
    .join("/");
}

export function reviewHref(id: string): string {
  return `#/review/${encodeURIComponent(id)}`;
}

class Router {
  route = $state.raw<Route>(parseRoute(location.hash));

  constructor() {
    addEventListener("hashchange", () => (this.route = parseRoute(location.hash)));
  }

  go(hash: string): void {
    location.hash = hash;
    this.route = parseRoute(hash);
  }
}

export const router = new Router();

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
