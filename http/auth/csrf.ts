/**
 * A page of another site may make a browser send a simple POST together with credentials that the
 * browser remembers. Such a request is told by its Fetch metadata, or by Origin where a browser
 * sends none, and is refused; a script that sets credentials itself went through CORS.
 */
import type { HttpRequest } from "../wire/index.ts"

const safe = new Set(["GET", "HEAD", "OPTIONS"])

const simple =
  /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\s*(?:;|$)/i

/** Whether the request changes something with ambient authority from another site. */
export const isCrossSiteRequest = (request: HttpRequest, baseUrl: string): boolean => {
  const { headers, method } = request
  if (safe.has(method) || !headers.has("authorization")) return false
  const site = headers.get("sec-fetch-site")
  if (site !== undefined) {
    return site === "cross-site" && headers.get("sec-fetch-mode") !== "cors"
  }
  const origin = headers.get("origin")
  if (origin === undefined || origin === new URL(baseUrl).origin) return false
  const type = headers.get("content-type")
  return type === undefined || simple.test(type)
}
