/**
 * Discovery: rel=mailbox in Link headers (RFC 8288) and in HTML (protocol §1.2); the same of
 * rel=ldp#inbox, and the inbox that JSON-LD names (Linked Data Notifications §3.1). Pure.
 */
import { Buffer } from "node:buffer"
import { uriCharsMax } from "../limits.ts"
import type { Headers } from "./exchange.ts"
import { resolved, valueOf } from "./schedule.ts"

/** Names of one relation, in lower case. */
type Rel = ReadonlyArray<string>

const mailboxRel: Rel = ["mailbox"]

const inboxIri = "http://www.w3.org/ns/ldp#inbox"

const inboxRel: Rel = [inboxIri]

/** RDFa knows the prefix without being told. */
const inboxRelInHtml: Rel = [inboxIri, "ldp:inbox"]

const names = (rel: Rel, rels: string | undefined): boolean =>
  rels !== undefined &&
  rels.toLowerCase().split(/[ \t\n\f\r]+/).some((name) => rel.includes(name))

const isSpace = (char: string | undefined): boolean =>
  char === " " || char === "\t" || char === "\n" || char === "\f" || char === "\r"

/** Reads a text from its start to its end, never back. */
class Cursor {
  readonly text: string
  at = 0

  constructor(text: string) {
    this.text = text
  }

  get char(): string | undefined {
    return this.text[this.at]
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length
  }

  spaces(): void {
    while (isSpace(this.char)) this.at += 1
  }

  /** Takes this character, when it is next. */
  takes(char: string): boolean {
    if (this.char !== char) return false
    this.at += 1
    return true
  }

  /** What there is up to one of these characters, or to the end. */
  until(ends: string): string {
    const from = this.at
    while (!this.isAtEnd && !ends.includes(this.char ?? "")) this.at += 1
    return this.text.slice(from, this.at)
  }

  /** Moves behind the next `mark`; to the end without one. */
  past(mark: string): void {
    const found = this.text.indexOf(mark, this.at)
    this.at = found < 0 ? this.text.length : found + mark.length
  }
}

/** A quoted string of a header, after its first quote. */
const quoted = (cursor: Cursor): string => {
  let value = ""
  while (!cursor.isAtEnd) {
    value += cursor.until("\\\"")
    if (cursor.takes("\"")) return value
    cursor.at += 1
    value += cursor.char ?? ""
    cursor.at += 1
  }
  return value
}

/** The parameters behind a link's target; the first of each name counts (RFC 8288 §3). */
const parameters = (cursor: Cursor): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  for (;;) {
    cursor.spaces()
    if (!cursor.takes(";")) return found
    cursor.spaces()
    const name = cursor.until("=;, \t").toLowerCase()
    cursor.spaces()
    let value = ""
    if (cursor.takes("=")) {
      cursor.spaces()
      value = cursor.takes("\"") ? quoted(cursor) : cursor.until(";, \t")
    }
    if (name !== "" && !found.has(name)) found.set(name, value)
  }
}

/** The target of the first link of this relation whose context is the resource itself. */
const inLinkHeader = (rel: Rel, header: string): string | undefined => {
  const cursor = new Cursor(header)
  while (!cursor.isAtEnd) {
    cursor.past("<")
    if (cursor.isAtEnd) return undefined
    const target = cursor.until(">")
    cursor.at += 1
    const params = parameters(cursor)
    if (names(rel, params.get("rel")) && !params.has("anchor")) return target.trim()
    // What is not a parameter belongs to no link.
    cursor.past(",")
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

/** A start tag behind its `<`, leniently as HTML §13.2.5 does. */
const startTag = (cursor: Cursor): Tag => {
  const name = cursor.until(" \t\n\f\r/>").toLowerCase()
  const attributes = new Map<string, string>()
  for (;;) {
    while (isSpace(cursor.char) || cursor.char === "/") cursor.at += 1
    if (cursor.isAtEnd || cursor.takes(">")) return { name, attributes }
    const key = (cursor.takes("=") ? "=" : "") + cursor.until(" \t\n\f\r/>=").toLowerCase()
    cursor.spaces()
    let value = ""
    if (cursor.takes("=")) {
      cursor.spaces()
      const quote = cursor.takes("\"") ? "\"" : cursor.takes("'") ? "'" : undefined
      value = cursor.until(quote ?? " \t\n\f\r>")
      if (quote !== undefined) cursor.at += 1
    }
    if (!attributes.has(key)) attributes.set(key, value.slice(0, uriCharsMax))
  }
}

/** Elements whose content is text: what looks like a tag there is none. */
const textual = new Set(["script", "style", "textarea", "title", "noscript", "template", "iframe"])

/** The start tags of a document in order. */
function* startTags(html: string): Generator<Tag> {
  const cursor = new Cursor(html)
  const lower = new Cursor(html.replace(/[A-Z]/g, (letter) => letter.toLowerCase()))
  for (;;) {
    cursor.past("<")
    if (cursor.isAtEnd) return
    if (html.startsWith("!--", cursor.at)) {
      cursor.past("-->")
    } else if (/[A-Za-z]/.test(cursor.char ?? "")) {
      const tag = startTag(cursor)
      yield tag
      if (textual.has(tag.name)) {
        lower.at = cursor.at
        lower.past(`</${tag.name}`)
        cursor.at = lower.at
      }
    }
  }
}

/** What a relation of a document refers to: that of a `link` before that of an `a`. */
const inHtml = (rel: Rel, html: string, uri: URL): string | undefined => {
  let base = uri
  let anchor: string | undefined
  let isBased = false
  for (const { attributes, name } of startTags(html)) {
    const href = attributes.get("href")
    if (href === undefined) continue
    if (name === "base" && !isBased) {
      isBased = true
      base = new URL(resolved(unescaped(href), uri) ?? uri)
    }
    if ((name !== "link" && name !== "a") || !names(rel, attributes.get("rel"))) continue
    if (name === "link") return resolved(unescaped(href).trim(), base)
    anchor ??= resolved(unescaped(href).trim(), base)
  }
  return anchor
}

const isHtml = (type: string | undefined): boolean =>
  type !== undefined && /^\s*(text\/html|application\/xhtml\+xml)\s*(;|$)/i.test(type)

const linkedIn = (rel: Rel, { link }: Headers, uri: URL): string | undefined => {
  const header = typeof link === "string" ? link : link?.join(", ")
  return header === undefined ? undefined : resolved(inLinkHeader(rel, header), uri)
}

const textOf = (body: Uint8Array): string => Buffer.from(body).toString("utf8")

/** The mailbox that an answer of `uri` names, as an absolute http(s) URI; undefined without one. */
export const mailboxIn = (headers: Headers, body: Uint8Array, uri: URL): string | undefined => {
  const linked = linkedIn(mailboxRel, headers, uri)
  if (linked !== undefined) return linked
  return isHtml(valueOf(headers, "content-type"))
    ? inHtml(mailboxRel, textOf(body), uri)
    : undefined
}

const isLinkedData = (type: string | undefined): boolean =>
  type !== undefined && /^\s*application\/(ld|activity)\+json\s*(;|$)/i.test(type)

type Node = Readonly<Record<string, unknown>>

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The nodes at the root of a document. */
const nodesOf = (root: unknown): ReadonlyArray<Node> =>
  [root].flat().filter(isNode).flatMap((node) =>
    Object.hasOwn(node, "@graph") ? [node, ...[node["@graph"]].flat().filter(isNode)] : [node]
  )

const idOf = (value: unknown): unknown =>
  isNode(value) ? ["@id", "id"].map((key) => value[key]).find((id) => id !== undefined) : value

/** Names of the property without its contexts, which are never fetched. */
const inboxNames = [inboxIri, "ldp:inbox", "inbox"]

/** The inbox of what a JSON-LD document is about: of `uris`, or of a node without a name. */
const inJson = (text: string, base: URL, uris: ReadonlyArray<string>): string | undefined => {
  let root: unknown
  try {
    root = JSON.parse(text)
  } catch {
    return undefined
  }
  for (const node of nodesOf(root)) {
    const id = idOf(node)
    const isMeant = typeof id !== "string" || uris.includes(resolved(id, base) ?? "")
    const values = inboxNames.filter((name) => Object.hasOwn(node, name)).map((name) => node[name])
    const named = values.flat().map(idOf).find((value) => typeof value === "string")
    if (isMeant && typeof named === "string") return resolved(named, base)
  }
  return undefined
}

/**
 * The inbox that an answer of `uri` names; `target` is what was asked for, which may have led
 * there. Undefined without one.
 */
export const inboxIn = (
  headers: Headers,
  body: Uint8Array,
  uri: URL,
  target: string
): string | undefined => {
  const linked = linkedIn(inboxRel, headers, uri)
  if (linked !== undefined) return linked
  const type = valueOf(headers, "content-type")
  if (isHtml(type)) return inHtml(inboxRelInHtml, textOf(body), uri)
  return isLinkedData(type) ? inJson(textOf(body), uri, [uri.href, target]) : undefined
}
