/**
 * Content negotiation by the Accept field (RFC 9110 §12.4, §12.5.1). A malformed member of the
 * field is ignored, and a field without a well-formed member counts as absent (RFC 9110 §2.4 leaves
 * recovery to the recipient). The README says why this is not `negotiator`.
 */
import { acceptCacheMax, acceptCharsMax, acceptRangesMax } from "../limits.ts"

/** A media type without parameters, lower case, such as `text/html`. */
export type MediaType = string

/** One member of an Accept field; `*` matches any type, `q` is in thousandths. */
export interface MediaRange {
  readonly type: string
  readonly subtype: string
  readonly parameters: ReadonlyArray<readonly [name: string, value: string]>
  readonly q: number
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"

const rangePattern = new RegExp(`^(${token})/(${token})$`)

const parameterPattern = new RegExp(`^(${token})\\s*=\\s*(?:(${token})|"((?:[^"\\\\]|\\\\.)*)")$`)

const qPattern = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/** Splits at a separator that is not inside a quoted string. */
export const splitQuoted = (text: string, separator: string): ReadonlyArray<string> => {
  if (!text.includes("\"")) return text.split(separator)
  const parts: Array<string> = []
  let quoted = false
  let start = 0
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]
    if (quoted && character === "\\") index += 1
    else if (character === "\"") quoted = !quoted
    else if (!quoted && character === separator) {
      parts.push(text.slice(start, index))
      start = index + 1
    }
  }
  parts.push(text.slice(start))
  return parts
}

const parseRange = (member: string): MediaRange | undefined => {
  const [first = "", ...rest] = splitQuoted(member, ";")
  const range = rangePattern.exec(first.trim().toLowerCase())
  const type = range?.[1]
  const subtype = range?.[2]
  if (type === undefined || subtype === undefined) return undefined
  if (type === "*" && subtype !== "*") return undefined
  const parameters: Array<readonly [string, string]> = []
  let q = 1000
  for (const piece of rest) {
    if (piece.trim() === "") continue
    const parameter = parameterPattern.exec(piece.trim())
    if (parameter === null) return undefined
    const name = (parameter[1] ?? "").toLowerCase()
    const value = parameter[2] ?? (parameter[3] ?? "").replace(/\\(.)/g, "$1")
    if (name !== "q") parameters.push([name, value])
    else if (qPattern.test(value)) {
      q = Math.round(Number(value) * 1000)
      break
    } else return undefined
  }
  return { type, subtype, parameters, q }
}

/** The well-formed media ranges of an Accept field, in its order. */
export const parseAccept = (accept: string): ReadonlyArray<MediaRange> => {
  const ranges: Array<MediaRange> = []
  for (const member of splitQuoted(accept.slice(0, acceptCharsMax), ",")) {
    if (ranges.length === acceptRangesMax) break
    const range = member.trim() === "" ? undefined : parseRange(member)
    if (range !== undefined) ranges.push(range)
  }
  return ranges
}

/**
 * Parameters that do not restrict the choice: every text is UTF-8, and a server may ignore a
 * profile of JSON-LD (RFC 6906 §3.1).
 */
const isIgnorable = (subtype: string) => ([name, value]: readonly [string, string]): boolean =>
  (name === "charset" && /^utf-?8$/i.test(value)) || (name === "profile" && subtype === "ld+json")

/** How exactly a range matches: 0 not, 1 any type, 2 any subtype, 3 the type, 4+ parameters. */
const precedence = (range: MediaRange, type: string, subtype: string): number => {
  const isIgnored = isIgnorable(subtype)
  if (range.type === "*") return range.parameters.every(isIgnored) ? 1 : 0
  if (range.type !== type) return 0
  if (range.subtype !== "*" && range.subtype !== subtype) return 0
  if (!range.parameters.every(isIgnored)) return 0
  return range.subtype === "*" ? 2 : 3 + range.parameters.length
}

/**
 * The type with the highest q; among equals the one that a range matches most exactly, then the one
 * that is offered first.
 */
const chooseType = (
  ranges: ReadonlyArray<MediaRange>,
  offered: ReadonlyArray<MediaType>
): MediaType | undefined => {
  let chosen: MediaType | undefined
  let chosenQ = 0
  let chosenBest = 0
  for (const media of offered) {
    const [type = "", subtype = ""] = media.split("/")
    let best = 0
    let q = 0
    for (const range of ranges) {
      const level = precedence(range, type, subtype)
      if (level > best) {
        best = level
        q = range.q
      }
    }
    if (q > chosenQ || (q === chosenQ && q > 0 && best > chosenBest)) {
      chosen = media
      chosenQ = q
      chosenBest = best
    }
  }
  return chosen
}

const caches = new WeakMap<ReadonlyArray<MediaType>, Map<string, MediaType | undefined>>()

/**
 * The offered type that the Accept field prefers; the first one is the default. Undefined if no
 * type is acceptable (406). Results are cached for each `offered` array, so pass a constant.
 */
export const negotiate = (
  accept: string | undefined,
  offered: ReadonlyArray<MediaType>
): MediaType | undefined => {
  if (accept === undefined || accept === "" || accept === "*/*") return offered[0]
  let cache = caches.get(offered)
  if (cache === undefined) {
    cache = new Map()
    caches.set(offered, cache)
  }
  if (cache.has(accept)) return cache.get(accept)
  const ranges = parseAccept(accept)
  const chosen = ranges.length === 0 ? offered[0] : chooseType(ranges, offered)
  if (cache.size >= acceptCacheMax) cache.clear()
  cache.set(accept, chosen)
  return chosen
}

/** The kinds of document bodies. */
export type BodyKind = "xml" | "json" | "form"

/** The media type of a Content-Type, lower case, without its parameters. */
export const mediaTypeOf = (contentType: string): MediaType => {
  const end = contentType.indexOf(";")
  return (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
}

/** The kind of a body by its Content-Type (protocol §0); undefined for unsupported ones (415). */
export const bodyKind = (contentType: string | undefined): BodyKind | undefined => {
  if (contentType === undefined) return undefined
  const media = mediaTypeOf(contentType)
  if (media === "text/xml+rss" || media === "text/xml" || media === "application/xml") return "xml"
  if (media === "application/json") return "json"
  if (media === "application/x-www-form-urlencoded") return "form"
  const slash = media.indexOf("/")
  if (slash < 1) return undefined
  // Another type of JSON, such as JSON-LD, is another document with names of its own.
  return media.endsWith("+xml") ? "xml" : undefined
}

/** The value of `Accept-Post` or `Accept` in a 415 answer, with a resource's further types. */
export const acceptedBodies = (form: boolean, ...furtherTypes: ReadonlyArray<MediaType>): string =>
  [
    "application/xml, text/xml, text/xml+rss, application/rss+xml, application/json",
    ...form ? ["application/x-www-form-urlencoded"] : [],
    ...furtherTypes
  ].join(", ")
