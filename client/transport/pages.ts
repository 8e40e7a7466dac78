/** Listings that come in pages (`Link; rel="next"`), one after the other. */
import type { JsonObject } from "./json.ts"
import type { HttpTransport } from "./transport.ts"

/** The target of the first link with this relation, as it is written. */
export const linkOf = (field: string | null, relation: string): string | undefined => {
  for (const [, target, parameters = ""] of (field ?? "").matchAll(linkPattern)) {
    const [, quoted, bare] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters) ?? []
    const relations = (quoted ?? bare ?? "").toLowerCase().split(/\s+/)
    if (relations.includes(relation)) return target
  }
  return undefined
}

const linkPattern = /<([^>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))?)*)/g

/* The Link field (RFC 8288). */

/** How a listing is read. */
export interface ListingOptions {
  readonly signal?: AbortSignal | undefined
  /** Entries of one page, as they are fetched. */
  readonly pageSize?: number | undefined
}

/** Path with these parameters; those that are undefined are left out. */
export const withQuery = (
  path: string,
  parameters: Readonly<Record<string, string | number | undefined>>
): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) query.append(name, String(value))
  }
  const text = query.toString()
  return text === "" ? path : `${path}?${text}`
}

/** The documents of all pages; the next one is fetched when it is asked for. */
export async function* pagesOf(
  transport: HttpTransport,
  first: string,
  options: {
    readonly signal?: AbortSignal | undefined
    readonly authorization?: string | undefined
  } = {}
): AsyncGenerator<JsonObject, void, void> {
  for (let uri: string | undefined = first; uri !== undefined;) {
    const page: { readonly document: JsonObject; readonly headers: Headers } = await transport
      .json({ method: "GET", uri, ...options })
    yield page.document
    uri = linkOf(page.headers.get("link"), "next")
  }
}
