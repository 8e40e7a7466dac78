/** Conditional requests (RFC 9110 §13) and byte ranges (§14) as pure functions. */
import { entityTagsMax } from "../limits.ts"

/** The current state of a resource; `etag` is `undefined` where there is nothing. */
export interface Validators {
  readonly exists: boolean
  readonly etag?: string | undefined
  /** Milliseconds since the epoch. */
  readonly modifiedMs?: number | undefined
}

/** Reads a request field by its lower-case name. */
export interface HeaderFields {
  get(name: string): string | undefined
}

/** `not-modified` is answered with 304, `failed` with 412. */
export type PreconditionResult = "proceed" | "not-modified" | "failed"

interface Tag {
  readonly weak: boolean
  readonly opaque: string
}

/** One character class before a tag, since two adjacent ones would cause backtracking. */
const tagPattern = /^[\s,]*(W\/)?("[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)/

/** The entity tags of a field, or `undefined` when it is malformed. */
const parseTags = (field: string): ReadonlyArray<Tag> | undefined => {
  const tags: Array<Tag> = []
  let rest = field
  while (rest.trim() !== "" && tags.length < entityTagsMax) {
    const match = tagPattern.exec(rest)
    const opaque = match?.[2]
    if (match === null || opaque === undefined) return undefined
    tags.push({ weak: match[1] !== undefined, opaque })
    rest = rest.slice(match[0].length)
  }
  return tags
}

const toTag = (etag: string): Tag =>
  etag.startsWith("W/") ? { weak: true, opaque: etag.slice(2) } : { weak: false, opaque: etag }

/** RFC 9110 §8.8.3.2: strong comparison needs both to be strong. */
const matches = (field: string, state: Validators, strong: boolean): boolean => {
  if (field.trim() === "*") return state.exists
  if (!state.exists || state.etag === undefined) return false
  const current = toTag(state.etag)
  if (strong && current.weak) return false
  const tags = parseTags(field)
  return tags !== undefined &&
    tags.some((tag) => tag.opaque === current.opaque && !(strong && tag.weak))
}

const datePattern = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/

/** An HTTP date in milliseconds; obsolete forms are accepted as far as `Date.parse` does. */
export const parseHttpDate = (field: string): number | undefined => {
  const text = field.trim()
  if (!datePattern.test(text) && !/^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d/.test(text)) return undefined
  const time = Date.parse(/GMT|UTC/.test(text) ? text : `${text} GMT`)
  return Number.isNaN(time) ? undefined : time
}

/** Milliseconds as an HTTP date. */
export const httpDate = (timeMs: number): string => new Date(timeMs).toUTCString()

const seconds = (timeMs: number): number => Math.floor(timeMs / 1000)

/** Whether a date field is valid and the resource was not modified after it. */
const unmodifiedSince = (field: string, state: Validators): boolean | undefined => {
  const date = parseHttpDate(field)
  if (date === undefined || state.modifiedMs === undefined) return undefined
  return seconds(state.modifiedMs) <= seconds(date)
}

/**
 * Evaluates a request's preconditions in the order of RFC 9110 §13.2.2, for a request that would
 * otherwise get a 2xx. It skips malformed date fields, as the RFC says; a malformed entity tag
 * matches nothing.
 */
export const evaluatePreconditions = (
  method: string,
  fields: HeaderFields,
  state: Validators
): PreconditionResult => {
  const ifMatch = fields.get("if-match")
  if (ifMatch !== undefined) {
    if (!matches(ifMatch, state, true)) return "failed"
  } else {
    const ifUnmodified = fields.get("if-unmodified-since")
    if (ifUnmodified !== undefined && unmodifiedSince(ifUnmodified, state) === false) {
      return "failed"
    }
  }
  const isRead = method === "GET" || method === "HEAD"
  const ifNoneMatch = fields.get("if-none-match")
  if (ifNoneMatch !== undefined) {
    if (!matches(ifNoneMatch, state, false)) return "proceed"
    return isRead ? "not-modified" : "failed"
  }
  const ifModified = isRead ? fields.get("if-modified-since") : undefined
  if (ifModified !== undefined && unmodifiedSince(ifModified, state) === true) return "not-modified"
  return "proceed"
}

/** RFC 9110 §13.1.5: whether a Range may be honored; strong validators only. */
export const isIfRangeSatisfied = (field: string | undefined, state: Validators): boolean => {
  if (field === undefined) return true
  const text = field.trim()
  if (text.startsWith("\"") || text.startsWith("W/")) {
    return text === state.etag && !text.startsWith("W/")
  }
  const date = parseHttpDate(text)
  return date !== undefined && state.modifiedMs !== undefined &&
    seconds(state.modifiedMs) === seconds(date)
}

/** The part to serve: all (200), `first` to `last` inclusive (206), or none (416). */
export type RangeChoice =
  | { readonly _tag: "Whole" }
  | { readonly _tag: "Part"; readonly first: number; readonly last: number }
  | { readonly _tag: "Unsatisfiable" }

const whole: RangeChoice = { _tag: "Whole" }

const unsatisfiable: RangeChoice = { _tag: "Unsatisfiable" }

const rangePattern = /^(\d{0,15})-(\d{0,15})$/

/**
 * Reads a Range field for a representation of `lengthBytes`. Several ranges get the whole
 * representation, as §14.2 allows: few clients need multipart/byteranges, and it invites abuse.
 * Other units and malformed fields are ignored.
 */
export const chooseRange = (field: string | undefined, lengthBytes: number): RangeChoice => {
  if (field === undefined) return whole
  const set = /^\s*bytes\s*=(.*)$/i.exec(field)?.[1]
  if (set === undefined || set.includes(",")) return whole
  const range = rangePattern.exec(set.trim())
  if (range === null) return whole
  const [, from = "", to = ""] = range
  if (from === "" && to === "") return whole
  if (from === "") {
    const suffix = Number(to)
    if (suffix === 0 || lengthBytes === 0) return unsatisfiable
    return { _tag: "Part", first: Math.max(0, lengthBytes - suffix), last: lengthBytes - 1 }
  }
  const first = Number(from)
  if (to !== "" && Number(to) < first) return whole
  if (first >= lengthBytes) return unsatisfiable
  const last = to === "" ? lengthBytes - 1 : Math.min(Number(to), lengthBytes - 1)
  return { _tag: "Part", first, last }
}

/** The Content-Range field of 206, or of 416 without a part. */
export const contentRange = (
  lengthBytes: number,
  part?: { readonly first: number; readonly last: number }
): string =>
  part === undefined
    ? `bytes */${lengthBytes}`
    : `bytes ${part.first}-${part.last}/${lengthBytes}`
