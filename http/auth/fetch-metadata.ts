/**
 * What a browser says of its requests (W3C Fetch Metadata): who made it send them, and for what.
 *
 * CSRF protection (OWASP): a page of another origin can make a browser send a simple POST with the
 * credentials that the browser remembers. Fetch metadata reveal such a request, or `Origin` in a
 * browser without them. A script that sets credentials itself has passed CORS.
 */
import type { HttpRequest } from "../wire/index.ts"

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"])

const simpleType =
  /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\s*(?:;|$)/i

const isOwnRequest = ({ headers }: HttpRequest, baseUrl: string): boolean => {
  const site = headers.get("sec-fetch-site")
  if (site !== undefined) return site === "same-origin" || site === "none"
  const origin = headers.get("origin")
  return origin === undefined || origin === new URL(baseUrl).origin
}

/**
 * Whether a page of another origin made the browser send this request with remembered credentials.
 * A host of the same site is another origin.
 */
export const isCrossSiteRequest = (request: HttpRequest, baseUrl: string): boolean => {
  const { headers, method } = request
  if (safeMethods.has(method) || !headers.has("authorization")) return false
  if (isOwnRequest(request, baseUrl)) return false
  if (headers.has("sec-fetch-site")) return headers.get("sec-fetch-mode") !== "cors"
  const type = headers.get("content-type")
  return type === undefined || simpleType.test(type)
}

/** What a browser shows to its user, or gives to a script of the page. */
const shownDestinations: ReadonlySet<string> = new Set(["document", "empty"])

/**
 * Whether the answer to a request is for somebody who reads it: a GET, and not what a browser sends
 * for a page of another origin, or for an image, a script, a style sheet or another part of a page.
 */
export const isForReader = (request: HttpRequest, baseUrl: string): boolean => {
  const { headers, method } = request
  if (method !== "GET") return false
  const destination = headers.get("sec-fetch-dest")
  return (destination === undefined || shownDestinations.has(destination)) &&
    isOwnRequest(request, baseUrl)
}
