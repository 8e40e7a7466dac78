/** Mailbox discovery: rel=mailbox in Link headers (RFC 8288) and in HTML (protocol §1.2). Pure. */
import { Buffer } from "node:buffer"
import { resolved } from "./answers.ts"
import type { Headers } from "./exchange.ts"
import { uriCharsMax } from "./limits.ts"

const rel = "mailbox"
const names = (rels: string | undefined): boolean =>
  rels !== undefined && rels.toLowerCase().split(/[ \t\n\f\r]+/).includes(rel)

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

/** The target of the first link with rel=mailbox whose context is the resource itself. */
const inLinkHeader = (header: string): string | undefined => {
  const cursor = new Cursor(header)
  while (!cursor.isAtEnd) {
    cursor.past("<")
    if (cursor.isAtEnd) return undefined
    const target = cursor.until(">")
    cursor.at += 1
    const params = parameters(cursor)
    if (names(params.get("rel")) && !params.has("anchor")) return target.trim()
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

/** What rel=mailbox of a document refers to: of a `link` before that of an `a`. */
const inHtml = (html: string, uri: URL): string | undefined => {
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
    if ((name !== "link" && name !== "a") || !names(attributes.get("rel"))) continue
    if (name === "link") return resolved(unescaped(href).trim(), base)
    anchor ??= resolved(unescaped(href).trim(), base)
  }
  return anchor
}

const isHtml = (type: string | undefined): boolean =>
  type !== undefined && /^\s*(text\/html|application\/xhtml\+xml)\s*(;|$)/i.test(type)

/** The mailbox that an answer of `uri` names, as an absolute http(s) URI; undefined without one. */
export const mailboxIn = (headers: Headers, body: Uint8Array, uri: URL): string | undefined => {
  const { link, "content-type": type } = headers
  const header = typeof link === "string" ? link : link?.join(", ")
  const linked = header === undefined ? undefined : resolved(inLinkHeader(header), uri)
  if (linked !== undefined) return linked
  if (typeof type !== "string" || !isHtml(type)) return undefined
  return inHtml(Buffer.from(body).toString("utf8"), uri)
}
