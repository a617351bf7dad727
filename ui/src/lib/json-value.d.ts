/** Any JSON, as the generated types name it; global, because the generator writes the name without an import. */
type JsonValue = number | string | boolean | JsonValue[] | { [key in string]?: JsonValue } | null;
