/**
 * The URIs of representations: the URI of a resource with `?format=` names one representation,
 * which the Accept field then does not choose (protocol §7).
 */
import { parseForm } from "./form-fields.ts"
import type { PageLink } from "./html/index.ts"
import type { MediaType } from "./negotiation.ts"

/** The media type of each format, in the order in which links name them. */
export const formatTypes = {
  xml: "application/xml",
  html: "text/html",
  json: "application/json",
  text: "text/plain",
  atom: "application/atom+xml",
  rss: "application/rss+xml",
  jsonld: "application/ld+json"
} as const satisfies Readonly<Record<string, MediaType>>

export type Format = keyof typeof formatTypes

// The keys of the table above.
const allFormats = Object.keys(formatTypes) as ReadonlyArray<Format>

/** The formats among media types. */
export const formatsOf = (types: ReadonlyArray<MediaType>): ReadonlyArray<Format> =>
  allFormats.filter((format) => types.includes(formatTypes[format]))

export const formatParameter = "format"

/** What a resource declares of its representations. */
export interface FormatOffer {
  readonly formats: ReadonlyArray<Format>
  /** The query parameters that select what is shown, in the order of canonical URIs. */
  readonly parameters: ReadonlyArray<string>
}

/** Which of its representations a request asks a resource for. */
export interface FormatChoice {
  readonly formats: ReadonlyArray<Format>
  /** The format that the URI names; undefined where the Accept field chooses. */
  readonly format: Format | undefined
  /** Why the URI names no representation; undefined for none. */
  readonly fault: string | undefined
  /** The resource's canonical URI, without the format. */
  readonly uri: string
}

/** The path with only one spelling of each character. */
const canonicalPath = (path: string): string =>
  /^[A-Za-z0-9\-._~/]*$/.test(path)
    ? path
    : path.split("/").map((segment) => encodeURIComponent(decodeURIComponent(segment))).join("/")

/** The choice of a request for a path that a route has matched. */
export const chooseFormat = (
  { path, query }: { readonly path: string; readonly query: string },
  { formats, parameters }: FormatOffer,
  baseUrl: string
): FormatChoice => {
  const base = baseUrl + canonicalPath(path)
  const chosen = (uri: string, more: Partial<FormatChoice> = {}): FormatChoice => ({
    formats,
    format: undefined,
    fault: undefined,
    uri,
    ...more
  })
  if (query === "") return chosen(base)
  const parsed = parseForm(query)
  // A resource that reads no query ignores a malformed one.
  if (!parsed.ok) {
    return /(?:^|&)format=/.test(query)
      ? chosen(base, { fault: `query: ${parsed.fault}` })
      : chosen(base)
  }
  const fields = parsed.value
  const pairs = parameters.flatMap((name) =>
    fields.all(name).map((value) => `${name}=${encodeURIComponent(value)}`)
  )
  const uri = pairs.length === 0 ? base : `${base}?${pairs.join("&")}`
  const named = fields.all(formatParameter)
  if (named.length === 0) return chosen(uri)
  const format = named.length === 1 ? formats.find((one) => one === named[0]) : undefined
  if (format !== undefined) return chosen(uri, { format })
  const fault = `this resource has no format ${JSON.stringify(named.join(" ").slice(0, 40))}: `
    + `use one of ${formats.join(", ")}`
  return chosen(uri, { fault })
}

const withFormat = (uri: string, format: Format): string =>
  `${uri}${uri.includes("?") ? "&" : "?"}${formatParameter}=${format}`

/** Relations to other pages of a listing (RFC 5005 §3). */
const pagingRelations: ReadonlyArray<string> = ["next", "prev", "previous", "first", "last"]

/** What a GET without a format and without an Accept field gets. */
const defaultFormat: Format = "xml"

/**
 * The links of a representation of a type: those of its view, whose pages keep the format, then
 * itself and the others. Its own URI needs no Accept field (WebSub §4.1): it has a format wherever
 * Accept has chosen another representation than the default.
 */
export const representationLinks = (
  links: ReadonlyArray<PageLink>,
  { format, formats, uri }: FormatChoice,
  type: MediaType
): ReadonlyArray<PageLink> => {
  const own = format ?? formatsOf([type]).find((one) => one !== defaultFormat)
  const self = own === undefined
    ? { rel: "self", href: uri }
    : { rel: "self", href: withFormat(uri, own), type: formatTypes[own] }
  return [
    ...links.map((link) =>
      format !== undefined && pagingRelations.includes(link.rel)
        ? { ...link, href: withFormat(link.href, format) }
        : link
    ),
    self,
    ...formats.filter((one) => one !== own).map((one) => ({
      rel: "alternate",
      href: withFormat(uri, one),
      type: formatTypes[one]
    }))
  ]
}
