/** Links between resources: the Link field (RFC 8288), and queries of URIs. */
import { unexpected } from "./json.ts"

const linkPattern = /<([^>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))?)*)/g

/** The URI of a created resource. */
export const locationOf = ({ headers }: { readonly headers: Headers }): string =>
  headers.get("location") ?? unexpected("no Location")

/** The URIs of a created resource; `edit` is secret. */
export const createdOf = (
  response: { readonly headers: Headers }
): { readonly href: string; readonly edit: string } => ({
  href: locationOf(response),
  edit: linkOf(response.headers.get("link"), "edit") ?? unexpected("no edit link")
})

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
 * The URL of a text, which is relative to `base`; undefined if it is not one. `actors/parse-url.ts`
 * says why not `canParse`.
 */
export const parseUrl = (text: string, base?: string): URL | undefined => {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

/**
 * Path and query of a link of the service to itself, which is requested at the service's `url`,
 * whatever origin the link has.
 */
export const pathOf = (uri: string): string => {
  const url = parseUrl(uri)
  return url === undefined ? uri : url.pathname + url.search
}

/** Options of listings. */
export interface ListingOptions {
  readonly signal?: AbortSignal | undefined
  /** Entries of one page. */
  readonly pageSize?: number | undefined
}

/** Options of listings that continue after a cursor. */
export interface CursorListingOptions extends ListingOptions {
  /** The cursor of an earlier page or notification, or any RFC 3339 time. */
  readonly after?: string | undefined
  /**
   * Called before the entries of a page that lost what followed the cursor: other readers deleted
   * it, or its retention ended. The listing goes on with what the service still has.
   */
  readonly onDiscarded?: (() => void) | undefined
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
