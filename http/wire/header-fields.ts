/** Header fields of answers: prepares the constant ones once, checks and joins the others. */
import { STATUS_CODES } from "node:http"

/** Fields of an answer, in order; names in their usual spelling. */
export type ReplyHeaders = ReadonlyArray<readonly [name: string, value: string]>

/** The policy of every page: resources of this origin only; no frame, no plug-in, no base. */
export const pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; "
  + "form-action 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
  + "frame-ancestors 'none'"

/** Request fields that a script of another origin may set. */
const allowedFields =
  "Authorization, Content-Type, Accept, If-Match, If-None-Match, If-Modified-Since, "
  + "If-Unmodified-Since, If-Range, Range, Prefer, Slug, Idempotency-Key, Message-Password, "
  + "Last-Event-ID, Content-Disposition, traceparent"

/** Origins that may call from a browser: any (`*`), one, or none. Never with credentials. */
export type CorsOrigin = string | undefined

/**
 * The status line with the fields that every answer has. The text of each status is cached, so that
 * no request builds it. A script of another origin may read all fields: `*` holds for requests
 * without cookies (Fetch §3.3.5), and the service allows no others.
 */
export const statusLines = (origin: CorsOrigin): (status: number) => string => {
  const shared = "\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer"
    + (origin === undefined ? "" : `\r\nAccess-Control-Allow-Origin: ${checked(origin)}`
      + "\r\nAccess-Control-Expose-Headers: *")
  const lines = new Map<number, string>()
  return (status) => {
    const cached = lines.get(status)
    if (cached !== undefined) return cached
    const line = `${status} ${STATUS_CODES[status] ?? "Unknown"}${shared}`
    lines.set(status, line)
    return line
  }
}

/**
 * The fields of an answer to OPTIONS: `Allow`, and those of CORS when the request is a preflight,
 * which has `Access-Control-Request-Method` (Fetch §3.3.2). Other answers must not have them.
 */
export const optionsHeaders = (
  allow: string,
  origin: CorsOrigin,
  isPreflight: boolean
): ReplyHeaders =>
  origin === undefined || !isPreflight ? [["Allow", allow]] : [
    ["Allow", allow],
    ["Access-Control-Allow-Methods", allow],
    ["Access-Control-Allow-Headers", allowedFields],
    ["Access-Control-Max-Age", "86400"]
  ]

const unsafe = /[^\t\x20-\x7e]/

/** Returns the text unchanged; throws (a defect) if it could begin another field. */
const checked = (value: string): string => {
  if (unsafe.test(value)) throw new Error("a header field holds a character that it must not")
  return value
}

/**
 * All fields as one text, so that one call writes them to the socket. An HTML answer gets the page
 * policy unless it has a policy.
 */
export const joinHeaders = (headers: ReplyHeaders): string =>
  keptTexts.get(headers) ?? joinFields(headers)

/** The texts of fields that many answers have. */
const keptTexts = new WeakMap<ReplyHeaders, string>()

/** Joins the fields of an answer that is kept, so that {@link joinHeaders} need not each time. */
export const keepJoined = (headers: ReplyHeaders): void => {
  keptTexts.set(headers, joinFields(headers))
}

const joinFields = (headers: ReplyHeaders): string => {
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
