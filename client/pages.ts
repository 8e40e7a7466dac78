/** Listings that come in pages (`Link; rel="next"`), one after the other. */
import type { JsonObject } from "./json.ts"
import { linkOf } from "./links.ts"
import type { HttpTransport } from "./transport.ts"

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
