/** What answers say: outcomes by status code, Retry-After, Location (protocol §1.3). Pure. */
import { uriCharsMax } from "../limits.ts"
import type { Answered, Headers } from "./exchange.ts"
import type { DeliveryOutcome } from "./protocol.ts"

/** The wait before each attempt in ms, the first included; after the last one it has failed. */
export type Schedule = ReadonlyArray<number>

/** Each wait is lengthened or shortened by up to this part of it. */
export const jitterPart = 0.2

/** The longest Retry-After that is honored. */
export const retryAfterMaxMs = 24 * 60 * 60 * 1000

/** The wait before the attempt after `made` ones, `random` in [0, 1); undefined: there is none. */
export const waitMs = (schedule: Schedule, made: number, random: number): number | undefined => {
  const wait = schedule[made]
  return wait === undefined ? undefined : Math.round(wait * (1 + jitterPart * (2 * random - 1)))
}

/**
 * When the attempt after `made` ones is due, given how the last one faulted; undefined when the
 * schedule is exhausted. A later Retry-After is honored, up to {@link retryAfterMaxMs}.
 */
export const dueAtMs = (
  schedule: Schedule,
  made: number,
  fault: Extract<DeliveryOutcome, { readonly _tag: "Faulted" }>,
  nowMs: number,
  random: number
): number | undefined => {
  const wait = waitMs(schedule, made, random)
  if (wait === undefined) return undefined
  return nowMs + Math.max(wait, Math.min(fault.retryAfterMs ?? 0, retryAfterMaxMs))
}

/* Retry and quit: when the next attempt is due (protocol §1.3). Pure. */

/** The one value of a header; undefined without, or when it was sent more than once. */
export const valueOf = (headers: Headers, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

const imfDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

const oldDate = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/

const asctimeDate = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** An HTTP date (RFC 9110 §5.6.7) as ms since the epoch; NaN for all else. */
const dateOf = (text: string): number => {
  if (imfDate.test(text) || oldDate.test(text)) return Date.parse(text)
  return asctimeDate.test(text) ? Date.parse(`${text} GMT`) : NaN
}

/** Retry-After in either form as ms from now, at most a day; undefined for what is neither. */
export const retryAfterMs = (value: string | undefined, nowMs: number): number | undefined => {
  if (value === undefined) return undefined
  const text = value.trim()
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : dateOf(text) - nowMs
  return Number.isNaN(waitMs)
    ? undefined
    : Math.round(Math.min(Math.max(waitMs, 0), retryAfterMaxMs))
}

/** The absolute http(s) URI that a Location, or another reference, leads to; else undefined. */
export const resolved = (reference: string | undefined, base: URL): string | undefined => {
  if (reference === undefined || !URL.canParse(reference, base.href)) return undefined
  const url = new URL(reference, base)
  const isWeb = url.protocol === "http:" || url.protocol === "https:"
  const isPlain = url.username === "" && url.password === ""
  return isWeb && isPlain && url.href.length <= uriCharsMax ? url.href : undefined
}

const isOneOf = (code: number, ...codes: ReadonlyArray<number>): boolean => codes.includes(code)

/** The outcome of an answer at `uri`; other classes of codes than 2 to 5 count as 5xx. */
export const outcomeOf = (
  { code, headers }: Answered,
  uri: URL,
  nowMs: number
): DeliveryOutcome => {
  if (code >= 200 && code < 300) {
    const location = resolved(valueOf(headers, "location"), uri)
    return { _tag: "Delivered", code, ...location === undefined ? {} : { location } }
  }
  if (code >= 500 || isOneOf(code, 408, 425, 429)) {
    const waitMs = retryAfterMs(valueOf(headers, "retry-after"), nowMs)
    const problem = `answered ${code}`
    return {
      _tag: "Faulted",
      code,
      problem,
      ...waitMs === undefined ? {} : { retryAfterMs: waitMs }
    }
  }
  const problem = code < 400
    ? `answered ${code}, a redirect that is not followed`
    : `answered ${code}`
  return { _tag: "Refused", code, problem }
}

/** The URI of a redirect of this method; undefined: the answer is what it is. */
export const redirectOf = (
  { code, headers }: Answered,
  method: "GET" | "POST",
  from: URL
): string | undefined => {
  const follows = isOneOf(code, 307, 308) || (method === "GET" && isOneOf(code, 301, 302, 303))
  const to = follows ? resolved(valueOf(headers, "location"), from) : undefined
  const isDowngrade = from.protocol === "https:" && to?.startsWith("http:") === true
  return isDowngrade ? undefined : to
}
