/**
 * What a browser says of its requests (W3C Fetch Metadata): who made it send them, and for what.
 *
 * CSRF protection (OWASP; protocol §7): a page of another origin can make a browser send requests
 * with the credentials that the browser remembers, or into a network that only the browser
 * reaches. Fetch metadata reveal such a request, or `Origin` in a browser without them.
 */
import type { HttpRequest } from "../wire/index.ts"

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"])

/** Whether no page of another origin caused the request. A host of the same site is another one. */
const isOwnRequest = ({ headers }: HttpRequest, baseUrl: string): boolean => {
  const site = headers.get("sec-fetch-site")
  const origin = headers.get("origin")
  // A page that sends no referrer has the Origin `null`, also for requests to itself.
  if (origin === "null") return site === "same-origin"
  return (site === undefined || site === "none" || site === "same-origin") &&
    (origin === undefined || origin === new URL(baseUrl).origin)
}

/**
 * Whether a page of an origin that may not change anything made the browser send this request.
 * `corsOrigin` is the origin that the operator lets do so, besides the service's own; `*` is none.
 */
export const isForbiddenOrigin = (
  request: HttpRequest,
  baseUrl: string,
  corsOrigin: string | undefined
): boolean => {
  const { headers, method } = request
  if (safeMethods.has(method)) return false
  const origin = headers.get("origin")
  return (origin === undefined || origin !== corsOrigin) && !isOwnRequest(request, baseUrl)
}

/**
 * Whether a request may act by its cookie (protocol §7, CSRF): it reads, or it proves that a page
 * of this service caused it. A browser sends a cookie also for pages of other origins.
 */
export const mayUseCookie = (request: HttpRequest, baseUrl: string): boolean => {
  const { headers, method } = request
  if (safeMethods.has(method)) return true
  return (headers.has("sec-fetch-site") || headers.has("origin")) && isOwnRequest(request, baseUrl)
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
