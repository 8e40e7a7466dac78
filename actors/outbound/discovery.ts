/**
 * Discovery of a mailbox by rel=mailbox, in Link headers (RFC 8288) and in HTML (protocol §1.2).
 * Discovery of an inbox by rel=ldp#inbox, or in JSON-LD (Linked Data Notifications §3.1). Pure.
 */
import { Predicate } from "effect"
import { Buffer } from "node:buffer"
import type { Headers } from "./exchange.ts"
import { resolved, valueOf } from "./response.ts"

/** Names of one relation, in lower case. */
type Rel = ReadonlyArray<string>

const mailboxRel: Rel = ["mailbox"]

const inboxIri = "http://www.w3.org/ns/ldp#inbox"

const inboxRel: Rel = [inboxIri]

/** RDFa predefines the prefix `ldp`. */
const inboxRelInHtml: Rel = [inboxIri, "ldp:inbox"]

const includesRel = (rel: Rel, rels: string | undefined): boolean =>
  rels !== undefined &&
  rels.toLowerCase().split(/[ \t\n\f\r]+/).some((name) => rel.includes(name))

/** A link of a header with its parameters; invalid text before the next comma is ignored. */
const linkPattern = /<([^<>]*)>((?:\s*;[^;,="<>]*(?:=\s*(?:"(?:[^"\\]|\\.)*(?:"|$)|[^;,"]*))?)*)/g

const parameterPattern = /;\s*([^;,="\s]*)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)|([^;,"\s]*)))?/g

/** The parameters of a link; the first of each name counts (RFC 8288 §3). */
const parametersOf = (text: string): ReadonlyMap<string, string> => {
  const parameters = new Map<string, string>()
  for (const [, name = "", quoted, token = ""] of text.matchAll(parameterPattern)) {
    const key = name.toLowerCase()
    if (!parameters.has(key)) parameters.set(key, quoted?.replace(/\\(.)/g, "$1") ?? token)
  }
  return parameters
}

/** The target of the first link of this relation whose context is the resource itself. */
const inLinkHeader = (rel: Rel, header: string): string | undefined => {
  for (const [, target = "", text = ""] of header.matchAll(linkPattern)) {
    const parameters = parametersOf(text)
    if (includesRel(rel, parameters.get("rel")) && !parameters.has("anchor")) return target.trim()
  }
  return undefined
}

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: "\"",
  apos: "'"
}

const unescaped = (value: string): string =>
  value.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,4}));/g, (all, dec, hex, name) => {
    const code = dec === undefined ? Number.parseInt(hex, 16) : Number(dec)
    if (name !== undefined) return entities[name] ?? all
    return code <= 0x10_ff_ff ? String.fromCodePoint(code) : all
  })

interface Tag {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
}

/** Elements whose content is text or inert: tags in it do not count. */
const textElements = new Set([
  "script",
  "style",
  "textarea",
  "title",
  "noscript",
  "template",
  "iframe"
])

/** The position after the next `mark`; the end of the text without one. */
const indexAfter = (text: string, mark: string, from: number): number => {
  const at = text.indexOf(mark, from)
  return at < 0 ? text.length : at + mark.length
}

/**
 * The start tags of a document in order, read as leniently as HTML §13.2.5. It moves forward only,
 * in linear time, and builds no tree, because a page may be hostile.
 */
function* startTags(html: string): Generator<Tag> {
  const lower = html.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  const start = /<(?:!--|([a-z][^\s/>]*))/g
  const attribute = /[\s/]*([^\s/>][^\s/>=]*)\s*(?:=\s*(?:"([^"]*)"?|'([^']*)'?|([^\s>]*)))?/y
  for (let match = start.exec(lower); match !== null; match = start.exec(lower)) {
    const [, name] = match
    if (name === undefined) {
      start.lastIndex = indexAfter(lower, "-->", start.lastIndex)
      continue
    }
    const attributes = new Map<string, string>()
    let at = attribute.lastIndex = start.lastIndex
    for (let found = attribute.exec(html); found !== null; found = attribute.exec(html)) {
      const [, key = "", double, single, unquoted = ""] = found
      const lowerKey = key.toLowerCase()
      if (!attributes.has(lowerKey)) attributes.set(lowerKey, double ?? single ?? unquoted)
      at = attribute.lastIndex
    }
    yield { name, attributes }
    at = indexAfter(lower, ">", at)
    start.lastIndex = textElements.has(name) ? indexAfter(lower, `</${name}`, at) : at
  }
}

/** The URI of a relation in a document: that of a `link` before that of an `a`. */
const inHtml = (rel: Rel, html: string, uri: URL): string | undefined => {
  let base: URL | undefined
  let anchor: string | undefined
  for (const { attributes, name } of startTags(html)) {
    const href = attributes.get("href")
    if (href === undefined) continue
    if (name === "base") base ??= new URL(resolved(unescaped(href), uri) ?? uri)
    if ((name !== "link" && name !== "a") || !includesRel(rel, attributes.get("rel"))) continue
    const target = resolved(unescaped(href).trim(), base ?? uri)
    if (name === "link") return target
    anchor ??= target
  }
  return anchor
}

const isHtml = (type: string | undefined): boolean =>
  type !== undefined && /^\s*(text\/html|application\/xhtml\+xml)\s*(;|$)/i.test(type)

const inLinkHeaders = (rel: Rel, { link }: Headers, uri: URL): string | undefined => {
  const header = typeof link === "string" ? link : link?.join(", ")
  return header === undefined ? undefined : resolved(inLinkHeader(rel, header), uri)
}

const textOf = (body: Uint8Array): string => Buffer.from(body).toString("utf8")

/** The mailbox that a response of `uri` names, an absolute http(s) URI; undefined without one. */
export const mailboxIn = (headers: Headers, body: Uint8Array, uri: URL): string | undefined => {
  const linked = inLinkHeaders(mailboxRel, headers, uri)
  if (linked !== undefined) return linked
  return isHtml(valueOf(headers, "content-type"))
    ? inHtml(mailboxRel, textOf(body), uri)
    : undefined
}

const isLinkedData = (type: string | undefined): boolean =>
  type !== undefined && /^\s*application\/(ld|activity)\+json\s*(;|$)/i.test(type)

/** The nodes at the root of a document. */
const nodesOf = (root: unknown): ReadonlyArray<Readonly<Record<PropertyKey, unknown>>> =>
  [root].flat().filter(Predicate.isObject).flatMap((node) =>
    Object.hasOwn(node, "@graph")
      ? [node, ...[node["@graph"]].flat().filter(Predicate.isObject)]
      : [node]
  )

const idOf = (value: unknown): unknown =>
  Predicate.isObject(value)
    ? ["@id", "id"].map((key) => value[key]).find((id) => id !== undefined)
    : value

/** Names of the property. JSON-LD contexts are never fetched. */
const inboxNames = [inboxIri, "ldp:inbox", "inbox"]

/** The inbox of the node in a JSON-LD document that has one of these URIs, or no id. */
const inJson = (text: string, base: URL, uris: ReadonlyArray<string>): string | undefined => {
  let root: unknown
  try {
    root = JSON.parse(text)
  } catch {
    return undefined
  }
  for (const node of nodesOf(root)) {
    const id = idOf(node)
    const isTarget = typeof id !== "string" || uris.includes(resolved(id, base) ?? "")
    const values = inboxNames.filter((name) => Object.hasOwn(node, name)).map((name) => node[name])
    const named = values.flat().map(idOf).find((value) => typeof value === "string")
    if (isTarget && typeof named === "string") return resolved(named, base)
  }
  return undefined
}

/**
 * The inbox that a response of `uri` names; undefined without one. `target` is the URI before its
 * redirects.
 */
export const inboxIn = (
  headers: Headers,
  body: Uint8Array,
  uri: URL,
  target: string
): string | undefined => {
  const linked = inLinkHeaders(inboxRel, headers, uri)
  if (linked !== undefined) return linked
  const type = valueOf(headers, "content-type")
  if (isHtml(type)) return inHtml(inboxRelInHtml, textOf(body), uri)
  return isLinkedData(type) ? inJson(textOf(body), uri, [uri.href, target]) : undefined
}
