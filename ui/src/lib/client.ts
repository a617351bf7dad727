/** What a paired assistant may do, in words. Pure. */
import type { ClientView, Scope } from "./bridge";
import * as m from "./messages";

export const allScopes: Scope[] = ["read", "call", "manage"];

/** What the person decides of a client. */
export type Limits = {
  scopes: Scope[];
  /** The connectors it sees; null = all. */
  servers: string[] | null;
  /** Unix milliseconds; null = it stays. */
  expiresAt: number | null;
};

export function scopeWords(scope: Scope): string {
  switch (scope) {
    case "read":
      return m.scope_read();
    case "call":
      return m.scope_call();
    case "manage":
      return m.scope_manage();
  }
}

/** `names` are those of the connectors by id. */
export function serversWords(servers: ClientView["servers"], names: (id: string) => string): string {
  if (servers === null) return m.servers_all();
  return servers.length === 0 ? m.servers_none() : m.servers_only({ names: servers.map(names).join(", ") });
}
