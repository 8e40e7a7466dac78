/** Who reads the page that answers a request, and how a page depends on it. */
import type { PageReader } from "./html/index.ts"
import type { FormatChoice } from "./representation-uris.ts"

/** The parts of a request on which the header of its page depends. */
export interface ReadRequest {
  readonly method?: string
  readonly path: string
  readonly query?: string
  readonly choice?: FormatChoice | undefined
  readonly viewer?: string | undefined
}

/**
 * A path with a secret is no place to return to: the link would repeat the secret, which reads
 * without an account. Neither are the pages that sign in and out.
 */
const isReturn = (path: string): boolean => !/~|%7e|^\/sign-(?:in|out)\b/i.test(path)

/** The path of the page that a request reads; of a change, the page of its resource. */
const pathOf = ({ choice, method = "GET", path, query = "" }: ReadRequest): string => {
  if (choice !== undefined) return choice.uri.replace(/^[a-z]+:\/\/[^/]+/i, "")
  return query === "" || (method !== "GET" && method !== "HEAD") ? path : `${path}?${query}`
}

export const pageReaderOf = (request: ReadRequest): PageReader => {
  const path = pathOf(request)
  return { account: request.viewer, returnPath: isReturn(path) ? path : undefined }
}

/**
 * The caching of a page. It shows who is signed in: a shared cache asks again, and no cache keeps a
 * page of an account for the next person at the browser.
 */
export const pageCaching = (
  headers: ReadonlyArray<readonly [string, string]>,
  { account }: PageReader
): ReadonlyArray<readonly [string, string]> => {
  const isVaried = headers.some(([name, value]) => name === "Vary" && value === "Cookie")
  const varied = isVaried ? headers : [...headers, ["Vary", "Cookie"] as const]
  return account === undefined
    ? varied
    : [
      ...varied.filter(([name]) => name !== "Cache-Control"),
      ["Cache-Control", "private, no-store"] as const
    ]
}
