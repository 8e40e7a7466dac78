/** Header fields of answers: prepares the constant ones once, checks and joins the others. */
import { STATUS_CODES } from "node:http"

/** Fields of an answer, in order; names in their usual spelling. */
export type ReplyHeaders = ReadonlyArray<readonly [name: string, value: string]>

/** The policy of every page: resources of this origin only; no frame, no plug-in, no base. */
export const pagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; "
  + "form-action 'self'; connect-src 'self'; img-src 'self'; "
  + "font-src 'self'; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/** The policy of every answer that is not HTML: it runs nothing, and no page frames it. */
export const documentPolicy = "sandbox; default-src 'none'; frame-ancestors 'none'"

/** The fields of every answer. */
const commonFields: ReplyHeaders = [
  ["X-Content-Type-Options", "nosniff"],
  ["Referrer-Policy", "no-referrer"]
]

const policyName = "Content-Security-Policy"

const sameOrigin = ["Cross-Origin-Resource-Policy", "same-origin"] as const

/**
 * The fields that every answer without HTML has (protocol §7), for a server that does not write
 * its answers by {@link joinHeaders}.
 */
export const documentHeaders: ReplyHeaders = [
  ...commonFields,
  [policyName, documentPolicy],
  sameOrigin
]

/** The policy of the service's own scripts. */
export const scriptPolicy = "default-src 'self'"

/** Request fields that a script of another origin may set. */
const allowedFields =
  "Authorization, Content-Type, Accept, If-Match, If-None-Match, If-Modified-Since, "
  + "If-Unmodified-Since, If-Range, Range, Prefer, Slug, Idempotency-Key, Message-Password, "
  + "Last-Event-ID, Content-Disposition, Priority, Tags, Click, traceparent"

/** Origins that may call from a browser: any (`*`), one, or none. Never with credentials. */
export type CorsOrigin = string | undefined

/** The status lines of a server's answers. */
export interface StatusLines {
  /** Of an answer that pages of other origins may read, as far as the operator lets them. */
  readonly open: (status: number) => string
  /** Of an answer that they may read only if the operator names their origin. */
  readonly guarded: (status: number) => string
}

export const statusLines = (origin: CorsOrigin): StatusLines => {
  const open = linesFor(origin)
  return { open, guarded: origin === "*" ? linesFor(undefined) : open }
}

/**
 * The status line with the fields that every answer has. The text of each status is cached, so that
 * no request builds it. A script of another origin may read all fields: `*` holds for requests
 * without cookies (Fetch §3.3.5), and the service allows no others.
 */
const linesFor = (origin: CorsOrigin): (status: number) => string => {
  const shared = `\r\n${joinFields(commonFields)}`
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

/** Throws (a defect) if a field could begin another one. */
export const checkFields = (headers: ReplyHeaders): void => {
  for (const [name, value] of headers) {
    checked(name)
    checked(value)
  }
}

/**
 * All fields of an answer as one text, so that one call writes them to the socket. An answer has
 * {@link pagePolicy} if it is HTML, else {@link documentPolicy}, and is for pages of this origin,
 * unless its fields say otherwise.
 */
export const joinHeaders = (status: number, headers: ReplyHeaders): string =>
  keptTexts.get(headers) ?? joinWithPolicies(status, headers)

/** The texts of fields that many answers have. */
const keptTexts = new WeakMap<ReplyHeaders, string>()

/** Joins the fields of a kept answer, so that {@link joinHeaders} need not each time. */
export const keepJoined = (status: number, headers: ReplyHeaders): void => {
  keptTexts.set(headers, joinWithPolicies(status, headers))
}

/** A status line with fields after it. */
interface KeptHead {
  readonly statusLine: string
  readonly text: string
  readonly bytes: Uint8Array
}

/**
 * Fields that many answers have beside their own ones, with the policies. What begins with a status
 * line is the same for all of them, and is joined and encoded once.
 */
export class KeptFields {
  private readonly joined: string
  /** That of the latest status line, as nearly all answers have the same. */
  private latest: KeptHead | undefined

  /** Of answers that are not HTML. */
  constructor(headers: ReplyHeaders) {
    this.joined = joinWithPolicies(200, headers)
  }

  /** The status line, one of {@link StatusLines}, with these fields. */
  after(statusLine: string): KeptHead {
    const { latest } = this
    if (latest?.statusLine === statusLine) return latest
    const text = `${statusLine}\r\n${this.joined}`
    // In memory of its own: a small buffer would keep the block from which Node cut it.
    return this.latest = { statusLine, text, bytes: new Uint8Array(Buffer.from(text)) }
  }
}

/** Fields as text. */
export const joinFields = (headers: ReplyHeaders): string =>
  headers.map(([name, value]) => `${checked(name)}: ${checked(value)}`).join("\r\n")

const pageField = `\r\n${joinFields([[policyName, pagePolicy]])}`

const documentField = `\r\n${joinFields([[policyName, documentPolicy]])}`

const sameOriginField = `\r\n${joinFields([sameOrigin])}`

const joinWithPolicies = (status: number, headers: ReplyHeaders): string => {
  let text = ""
  let isPage = false
  // A browser would take the policy of a 304 in place of that of the page that it has.
  let hasPolicy = status === 304
  let hasOrigin = false
  for (const [name, value] of headers) {
    text += `\r\n${checked(name)}: ${checked(value)}`
    // By their lengths first, as this runs for each field of each answer.
    if (name.length === 12 && value.startsWith("text/html")) isPage = true
    if (name.length === 23 && name.toLowerCase() === "content-security-policy") hasPolicy = true
    if (name.length === 28 && name.toLowerCase() === "cross-origin-resource-policy") {
      hasOrigin = true
    }
  }
  if (!hasPolicy) text += isPage ? pageField : documentField
  if (!hasOrigin) text += sameOriginField
  return text.slice(2)
}
