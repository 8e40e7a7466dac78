/** Response headers, and the outcome of a response (protocol §1.3). Pure. */
import { answerSampleBytesMax, recordedHeaderCharsMax, recordedHeadersMax,
  uriCharsMax } from "../limits.ts"
import { parseUrl } from "../parse-url.ts"
import { type ExchangeResponse, type ExchangeResult, type Headers, isIdentity } from "./exchange.ts"
import type { DeliveryOutcome, ExchangeRecord } from "./protocol.ts"

/** The value of a header; undefined without one, or if it was sent more than once. */
export const valueOf = (headers: Headers, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

/** The media types of Accept-Post (LDP §7.1), in lower case; undefined without the field. */
export const acceptPostOf = (headers: Headers): ReadonlyArray<string> | undefined =>
  valueOf(headers, "accept-post")?.split(",")
    .map((one) => one.split(";", 1)[0]?.trim().toLowerCase() ?? "")

const imfDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

const oldDate = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/

const asctimeDate = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** An HTTP date (RFC 9110 §5.6.7) as ms since the epoch; NaN for anything else. */
const dateOf = (text: string): number => {
  if (imfDate.test(text) || oldDate.test(text)) return Date.parse(text)
  return asctimeDate.test(text) ? Date.parse(`${text} GMT`) : NaN
}

/** The longest Retry-After that is honored. */
export const retryAfterMaxMs = 24 * 60 * 60 * 1000

/** Retry-After in either form as ms from now, at most a day; undefined for anything else. */
export const retryAfterMs = (value: string | undefined, nowMs: number): number | undefined => {
  if (value === undefined) return undefined
  const text = value.trim()
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : dateOf(text) - nowMs
  return Number.isNaN(waitMs)
    ? undefined
    : Math.round(Math.min(Math.max(waitMs, 0), retryAfterMaxMs))
}

/** The absolute http(s) URI of a Location, or of another reference; undefined for others. */
export const resolved = (reference: string | undefined, base: URL): string | undefined => {
  const url = reference === undefined ? undefined : parseUrl(reference, base)
  if (url === undefined) return undefined
  const isWeb = url.protocol === "http:" || url.protocol === "https:"
  const isPlain = url.username === "" && url.password === ""
  return isWeb && isPlain && url.href.length <= uriCharsMax ? url.href : undefined
}

/** Credentials and cookies, which no record has. */
const unrecordedHeaders = new Set([
  "authorization",
  "proxy-authorization",
  "message-password",
  "cookie",
  "set-cookie",
  "set-cookie2"
])

/** Signatures of pushes: whoever has a whole one can send the push again. */
const signatureHeaders = new Set(["webhook-signature", "x-hub-signature"])

/** Each signature's scheme and first eight characters, which tell whether it is the right one. */
const cutSignatures = (value: string): string =>
  value.split(" ")
    .map((one) => one.replace(/^([A-Za-z0-9-]{1,16}[,=])?(.{8}).+$/s, "$1$2…"))
    .join(" ")

/** The first headers, as many as fit; a value that does not fit is cut. */
const recordedHeaders = (headers: Headers): Array<readonly [string, string]> => {
  const recorded: Array<readonly [string, string]> = []
  let left = recordedHeaderCharsMax
  for (const [name, values] of Object.entries(headers)) {
    if (values === undefined || unrecordedHeaders.has(name)) continue
    for (const whole of typeof values === "string" ? [values] : values) {
      const value = signatureHeaders.has(name) ? cutSignatures(whole) : whole
      left -= name.length
      if (recorded.length === recordedHeadersMax || left <= 0) return recorded
      recorded.push([name, value.length <= left ? value : `${value.slice(0, left - 1)}…`])
      left -= value.length
    }
  }
  return recorded
}

/** The bytes as text in UTF-8; undefined if they are none. The last character may be incomplete. */
const sampleText = (bytes: Uint8Array): string | undefined => {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return undefined
  }
}

const answerOf = (
  headers: Headers,
  { bytes, size }: NonNullable<ExchangeResponse["sample"]>,
  isPublic: boolean
): NonNullable<ExchangeRecord["answer"]> => {
  const isCut = size > answerSampleBytesMax
  const isPlain = isIdentity(valueOf(headers, "content-encoding"))
  const text = isPlain ? sampleText(bytes) : undefined
  return {
    ...isPublic ? { isPublic } : {},
    headers: recordedHeaders(headers),
    bytes: size,
    ...text === undefined ? {} : { text },
    ...isCut ? { isCut } : {}
  }
}

/** When a hop began and ended, and where. */
interface HopFacts {
  readonly beganAtMs: number
  readonly durationMs: number
  readonly isPublic: boolean
}

/** What was exchanged on a hop that sent these headers. */
export const exchangeRecordOf = (
  sentHeaders: Readonly<Record<string, string>>,
  result: ExchangeResult,
  { beganAtMs, durationMs, isPublic }: HopFacts
): ExchangeRecord => {
  const record = {
    beganAtMs,
    durationMs: Math.round(durationMs),
    requestHeaders: recordedHeaders(sentHeaders)
  }
  if (result._tag === "Failed") return record
  const { code, headers, sample } = result
  const answer = sample === undefined ? {} : { answer: answerOf(headers, sample, isPublic) }
  return { ...record, code, ...answer }
}

const isRedirect = (code = 0): boolean => code >= 300 && code < 400

/**
 * The record of the target of a redirect, or of what was sent in another form or to a discovered
 * target. It has the time of the earlier hops, too.
 */
export const afterHop = (earlier: ExchangeRecord, hop: ExchangeRecord): ExchangeRecord => {
  const redirects = (earlier.redirects ?? 0) + (isRedirect(earlier.code) ? 1 : 0)
  return {
    ...hop,
    beganAtMs: earlier.beganAtMs,
    // The clock may have been set back.
    durationMs: Math.max(
      earlier.durationMs ?? 0,
      hop.beganAtMs + (hop.durationMs ?? 0) - earlier.beganAtMs
    ),
    ...redirects === 0 ? {} : { redirects }
  }
}

const retryableCodes = [408, 425, 429]

/** The outcome of a response from `uri`; a code below 200 or above 599 counts as 5xx. */
export const outcomeOf = (
  { code, headers }: Pick<ExchangeResponse, "code" | "headers">,
  uri: URL,
  nowMs: number
): DeliveryOutcome => {
  if (code >= 200 && code < 300) {
    const location = resolved(valueOf(headers, "location"), uri)
    return { _tag: "Delivered", code, ...location === undefined ? {} : { location } }
  }
  const problem = `answered ${code}`
  const waitMs = retryAfterMs(valueOf(headers, "retry-after"), nowMs)
  // The receiver still processes an earlier attempt with the same Idempotency-Key.
  const isInProgress = code === 409 && waitMs !== undefined
  if (code >= 500 || retryableCodes.includes(code) || isInProgress) {
    const retryAfter = waitMs === undefined ? {} : { retryAfterMs: waitMs }
    return { _tag: "RetryableFailure", code, problem, ...retryAfter }
  }
  return code < 400
    ? { _tag: "PermanentFailure", code, problem: `${problem}, a redirect that is not followed` }
    : { _tag: "PermanentFailure", code, problem }
}

/**
 * The URI that a redirect of this method leads to; undefined if the response is final. A HEAD finds
 * out about a POST, so it follows the same redirects.
 */
export const redirectOf = (
  { code, headers }: Pick<ExchangeResponse, "code" | "headers">,
  method: "GET" | "HEAD" | "POST",
  from: URL
): string | undefined => {
  const codes = method === "GET" ? [301, 302, 303, 307, 308] : [307, 308]
  const follows = codes.includes(code)
  const to = follows ? resolved(valueOf(headers, "location"), from) : undefined
  const isDowngrade = from.protocol === "https:" && to?.startsWith("http:") === true
  return isDowngrade ? undefined : to
}
