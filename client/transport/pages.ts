/** Links between resources: the Link field (RFC 8288), queries of URIs, and listings in pages. */
import { type JsonObject, unexpected } from "./json.ts"
import type { HttpTransport } from "./transport.ts"

const linkPattern = /<([^>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))?)*)/g

/** The URI of a created resource. */
export const locationOf = ({ headers }: { readonly headers: Headers }): string =>
  headers.get("location") ?? unexpected("no Location")

/** The target of the first link with this relation, as written. */
export const linkOf = (field: string | null, relation: string): string | undefined => {
  for (const [, target, parameters = ""] of (field ?? "").matchAll(linkPattern)) {
    const [, quoted, bare] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters) ?? []
    const relations = (quoted ?? bare ?? "").toLowerCase().split(/\s+/)
    if (relations.includes(relation)) return target
  }
  return undefined
}

/**
 * Path and query of a link of the service to itself, which is requested at the service's `url`,
 * whatever origin the link has.
 */
export const pathOf = (uri: string): string => {
  if (!URL.canParse(uri)) return uri
  const { pathname, search } = new URL(uri)
  return pathname + search
}

/** Options of listings. */
export interface ListingOptions {
  readonly signal?: AbortSignal | undefined
  /** Entries of one page. */
  readonly pageSize?: number | undefined
}

/** The path with these parameters; undefined ones are omitted. */
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

/** The documents of all pages (`Link; rel="next"`), each requested when the caller needs it. */
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
    const next = linkOf(page.headers.get("link"), "next")
    uri = next !== undefined && transport.locate(first).isOwn ? pathOf(next) : next
  }
}
