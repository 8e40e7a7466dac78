/** The headers of every request that leaves. Pure. */

/** Headers that never leave: the connection's own, and what would be a credential. */
const neverSent = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "upgrade",
  "expect",
  "te",
  "trailer"
])

/** Header names are the same in any case: the ones set here must replace the caller's. */
export const headersOf = (
  given: Readonly<Record<string, string>>,
  userAgent: string
): Record<string, string> => {
  const headers: Record<string, string> = { accept: "*/*" }
  for (const name in given) {
    const lower = name.toLowerCase()
    const value = given[name]
    if (value !== undefined && !neverSent.has(lower)) headers[lower] = value
  }
  headers["user-agent"] = userAgent
  headers["accept-encoding"] = "identity"
  return headers
}
