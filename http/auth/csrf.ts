/**
 * CSRF protection (OWASP). A page of another site can make a browser send a simple POST with the
 * credentials that the browser remembers. Fetch metadata reveal such a request, or `Origin` in a
 * browser without them. A script that sets credentials itself has passed CORS.
 */
import type { HttpRequest } from "../wire/index.ts"

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"])

const simpleType =
  /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\s*(?:;|$)/i

/** Whether another site made the browser send this request with remembered credentials. */
export const isCrossSiteRequest = (request: HttpRequest, baseUrl: string): boolean => {
  const { headers, method } = request
  if (safeMethods.has(method) || !headers.has("authorization")) return false
  const site = headers.get("sec-fetch-site")
  if (site !== undefined) {
    return site === "cross-site" && headers.get("sec-fetch-mode") !== "cors"
  }
  const origin = headers.get("origin")
  if (origin === undefined || origin === new URL(baseUrl).origin) return false
  const type = headers.get("content-type")
  return type === undefined || simpleType.test(type)
}
