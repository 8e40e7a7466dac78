/** Header fields of answers: the constant ones prepared once, the others checked and joined. */
import { STATUS_CODES } from "node:http"

/** Fields of an answer, in order; names in their usual spelling. */
export type ReplyHeaders = ReadonlyArray<readonly [name: string, value: string]>

/** What every page may do: nothing but what this origin serves; no frame, no plug-in, no base. */
export const pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; "
  + "form-action 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
  + "frame-ancestors 'none'"

/** What a script of another origin may read of an answer. */
const exposedFields =
  "Location, ETag, Link, Retry-After, Message-Password, Notification-Status, Last-Modified, "
  + "Content-Range, Allow, Accept-Post, RateLimit, RateLimit-Policy"

/** Request fields that a script of another origin may set. */
const allowedFields =
  "Authorization, Content-Type, Accept, If-Match, If-None-Match, If-Modified-Since, "
  + "If-Unmodified-Since, If-Range, Range, Prefer, Slug, Idempotency-Key, Message-Password, "
  + "Last-Event-ID, Content-Disposition, traceparent"

/** Origins that may call from a browser: any (`*`), one, or none. Never with credentials. */
export type CorsOrigin = string | undefined

/**
 * The status line together with the fields of every answer, as one piece for each status, so that
 * they cost nothing for each request.
 */
export const statusLines = (origin: CorsOrigin): (status: number) => string => {
  const shared = "\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer"
    + (origin === undefined ? "" : `\r\nAccess-Control-Allow-Origin: ${checked(origin)}`
      + `\r\nAccess-Control-Expose-Headers: ${exposedFields}`)
  const lines = new Map<number, string>()
  return (status) => {
    const known = lines.get(status)
    if (known !== undefined) return known
    const line = `${status} ${STATUS_CODES[status] ?? "Unknown"}${shared}`
    lines.set(status, line)
    return line
  }
}

/** The fields of the answer to a preflight request (Fetch §4.8), beside `Allow`. */
export const preflightHeaders = (allow: string, origin: CorsOrigin): ReplyHeaders =>
  origin === undefined ? [["Allow", allow]] : [
    ["Allow", allow],
    ["Access-Control-Allow-Methods", allow],
    ["Access-Control-Allow-Headers", allowedFields],
    ["Access-Control-Max-Age", "86400"]
  ]

const unsafe = /[^\t\x20-\x7e]/

/** A field value as it is; throws (a defect) on anything that could begin another field. */
const checked = (value: string): string => {
  if (unsafe.test(value)) throw new Error("a header field holds a character that it must not")
  return value
}

/**
 * All fields in the form of one: what follows the first name, so that they reach the socket in one
 * call. An HTML answer gets the page policy unless it brings its own.
 */
export const joinHeaders = (headers: ReplyHeaders): string => {
  let text = ""
  let isPage = false
  let hasPolicy = false
  for (const [name, value] of headers) {
    if (text !== "") text += "\r\n"
    text += `${checked(name)}: ${checked(value)}`
    if (name.length === 12 && value.startsWith("text/html")) isPage = true
    if (name.length === 23 && name.toLowerCase() === "content-security-policy") hasPolicy = true
  }
  if (!isPage || hasPolicy) return text
  return `${text}\r\nContent-Security-Policy: ${pagePolicy}`
}
