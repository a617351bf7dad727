/** A tool's result, block by block, as far as it can be shown. Pure; nothing in it is trusted. */

export type Block =
  | { kind: "text"; text: string }
  | { kind: "image"; source: string; mimeType: string; bytes: number }
  | { kind: "audio"; source: string; mimeType: string; bytes: number }
  | { kind: "link"; uri: string; name: string; description: string }
  | { kind: "resource"; uri: string; mimeType: string; text: string | null }
  /** `note` says why it cannot be shown, `json` what it was; either may be empty. */
  | { kind: "other"; note: string; json: string };

/** Only types that a browser draws without running anything. */
const images = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);
const sounds = /^audio\/[a-z0-9.+-]+$/;
const base64 = /^[A-Za-z0-9+/\s]*={0,2}\s*$/;

export function readBlock(block: JsonValue): Block {
  const other: Block = { kind: "other", note: "", json: JSON.stringify(block, null, 2) };
  if (typeof block !== "object" || block === null || Array.isArray(block)) return other;
  const text = (key: string, from = block) => (typeof from[key] === "string" ? from[key] : "");
  const mimeType = text("mimeType") || text("mime_type");
  switch (block["type"]) {
    case "text":
      return { kind: "text", text: text("text") };
    case "image":
    case "audio": {
      const data = text("data");
      const known = block["type"] === "image" ? images.has(mimeType) : sounds.test(mimeType);
      if (!known || !base64.test(data)) return { kind: "other", note: "", json: mimeType || block["type"] };
      const bytes = Math.floor((data.replace(/[\s=]/g, "").length * 3) / 4);
      return { kind: block["type"], source: `data:${mimeType};base64,${data}`, mimeType, bytes };
    }
    case "resource_link":
      return { kind: "link", uri: text("uri"), name: text("title") || text("name"), description: text("description") };
    case "resource": {
      const inner = block["resource"];
      const resource = typeof inner === "object" && inner !== null && !Array.isArray(inner) ? inner : block;
      return {
        kind: "resource",
        uri: text("uri", resource),
        mimeType: text("mimeType", resource) || text("mime_type", resource),
        text: typeof resource["text"] === "string" ? resource["text"] : null,
      };
    }
    case "unknown": {
      const original = block["original"];
      return {
        kind: "other",
        note: text("text"),
        json: original === undefined ? "" : JSON.stringify(original, null, 2),
      };
    }
    default:
      return other;
  }
}

/** "812 bytes", "12 kB", "3.4 MB". */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
