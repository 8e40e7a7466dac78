/**
 * The rules of the W3C feed validator for Atom and RSS, in feeds whose senders wrote any text and
 * any address.
 */
import { describe, expect, it } from "vitest"
import { type Feed, type FeedEntry, toAtom, toRss } from "../../http/formats/feeds.ts"
import { childOf, childrenOf, childText, type Element,
  textOf } from "../../http/formats/xml/index.ts"
import { parser } from "./document-parser.ts"

const href = "http://post.test/mailboxes/alice"
const updated = "2030-01-02T03:04:05.678Z"

const entryOf = (at: number, more: Partial<FeedEntry> = {}): FeedEntry => ({
  id: `${href}/notifications/${at}`,
  title: `number ${at}`,
  received: updated,
  url: "http://example.org/m",
  ...more
})

const feedOf = (entries: ReadonlyArray<FeedEntry>, title = "News"): Feed => ({
  href,
  title,
  updated,
  entries
})

const parsed = (document: string): Element => {
  const result = parser.parseXml(Buffer.from(document))
  if (!result.ok) throw new Error(result.fault.detail)
  return result.value
}

const kinds = ["Atom", "RSS"] as const

/** The feed as one of both kinds, and its entries. */
const read = (kind: typeof kinds[number], feed: Feed) => {
  const links = [
    { rel: "mailbox", href },
    { rel: "self", href: `${href}?format=${kind.toLowerCase()}` },
    { rel: "alternate", href: `${href}?format=html`, type: "text/html" },
    { rel: "hub", href: `${href}/registrations` }
  ]
  const document = kind === "Atom" ? toAtom(feed, links) : toRss(feed, links)
  const root = parsed(document)
  const channel = kind === "Atom" ? root : childOf(root, "channel")
  if (channel === undefined) throw new Error("there is no channel")
  return { document, channel, entries: childrenOf(channel, kind === "Atom" ? "entry" : "item") }
}

const texts: ReadonlyArray<string> = [
  "",
  "   ",
  "two\nlines\tand more",
  "ünï 😀 & ]]> <",
  "<b>bold</b> &amp; <script>alert(1)</script>",
  "<i>",
  "</b>",
  "AT&T &copy; &#x41; &apos;",
  "\u007f \u0080\u0085\u009f \ufffd \ufdd0 \u{1fffe}\u{10ffff}",
  "\u202e\u200b\ufeff\ue000",
  "x".repeat(20_000)
]

/** Addresses, and the URI to which they lead; undefined where that is the notification. */
const addresses: ReadonlyArray<readonly [string, string | undefined]> = [
  ["http://example.org/m", "http://example.org/m"],
  ["http://example.org/ünï/😀", "http://example.org/%C3%BCn%C3%AF/%F0%9F%98%80"],
  ["http://example.org/a b", "http://example.org/a%20b"],
  [
    "http://example.org/?q=ä&b=[x]|^{}#frägment",
    [
      "http://example.org/?q=%C3%A4&b=%5Bx%5D%7C%5E%7B%7D#fr%C3%A4gment"
    ][0]
  ],
  ["http://example.org/%zz%41%", "http://example.org/%25zz%41%25"],
  ["http://bücher.example/straße", "http://xn--bcher-kva.example/stra%C3%9Fe"],
  ["https://例え.テスト/パス", "https://xn--r8jz45g.xn--zckzah/%E3%83%91%E3%82%B9"],
  ["http://example.org/\u202e\u{1ffff}", "http://example.org/%E2%80%AE%F0%9F%BF%BF"],
  ["HTTP://EXAMPLE.org:80", "http://example.org/"],
  ["//example.org/x", "http://example.org/x"],
  ["/content/x", "http://post.test/content/x"],
  ["sibling?x=1", "http://post.test/mailboxes/sibling?x=1"],
  ["mailto:bob@example.org", "mailto:bob@example.org"],
  ["ftp://example.org/f", "ftp://example.org/f"],
  ["http://example.org:99999/", undefined],
  ["http://", undefined],
  ["", undefined],
  ["javascript:alert(1)", undefined],
  ["data:text/html,x", undefined],
  ["urn:isbn:0451450523", undefined],
  ["x-unusual.scheme+1:foo", undefined]
]

const uri = /^[a-z][a-z0-9+.-]*:(?:\/\/)?(?:%[0-9A-F]{2}|[A-Za-z0-9\-._~:/?#@!$&'()*+,;=])+$/

describe.each(kinds)("%s", (kind) => {
  it.each(texts.map((text) => [text.slice(0, 40), text]))("shows %j as it is", (_name, text) => {
    const { channel, document, entries: [entry] } = read(
      kind,
      feedOf([entryOf(1, {
        title: text,
        author: text
      })], text)
    )
    expect(document).not.toMatch(/[\u007f-\u009f\ufffd]|\p{Noncharacter_Code_Point}/u)
    const names = kind === "Atom" ? ["title", "summary"] : ["title"]
    const shown = [childOf(channel, "title"), ...names.map((name) => entry && childOf(entry, name))]
    for (const one of shown) {
      const content = one === undefined ? "" : textOf(one)
      expect(content.trim()).not.toBe("")
      if (one?.attributes["type"] === "html") {
        expect(content).not.toContain("<")
        expect(content).not.toMatch(/&(?!(?:amp|lt|gt|quot|#39);)/)
      } else if (kind === "Atom") expect(content).not.toMatch(/<\/\w|&#?\w/)
      // Plain text with hexadecimal references, in which no end tag would be taken for HTML.
      else expect(content).not.toMatch(/<\/\w/)
    }
    if (kind === "RSS") expect(document).not.toMatch(/&(?:amp|lt);/)
    const title = childText(entry ?? channel, "title") ?? ""
    expect(title).not.toContain("\n")
  })

  it.each(addresses)("links %j", (address, expected) => {
    const { entries: [entry] } = read(kind, feedOf([entryOf(1, { url: address })]))
    const found = entry === undefined
      ? undefined
      : kind === "Atom"
      ? childOf(entry, "link")?.attributes["href"]
      : childText(entry, "link")
    expect(found).toBe(expected ?? entryOf(1).id)
    expect(found).toMatch(uri)
  })

  it.each(["\u0085", " ", ""])("has no author whose name %j is not shown", (author) => {
    const { entries: [entry] } = read(kind, feedOf([entryOf(1, { author })]))
    if (entry === undefined) throw new Error("there is no entry")
    if (kind === "Atom") expect(childOf(entry, "author")).toBeUndefined()
    else expect(childText(entry, "dc:creator")).toBe("restante")
  })

  it("has unique ids that are absolute URIs, authors, and dates of its format", () => {
    const authors = [undefined, "https://bücher.example/#me", "urn:x-bob:1", "me"]
    const { channel, entries } = read(
      kind,
      feedOf(authors.map((author, at) =>
        entryOf(at, {
          author
        })
      ))
    )
    const isAtom = kind === "Atom"
    const ids = entries.map((entry) => childText(entry, isAtom ? "id" : "guid"))
    expect(new Set(ids).size).toBe(authors.length)
    for (const id of ids) expect(id).toMatch(uri)
    const dates = isAtom
      ? [childText(channel, "updated"), ...entries.map((entry) => childText(entry, "updated"))]
      : [childText(channel, "lastBuildDate"), ...entries.map((one) => childText(one, "pubDate"))]
    for (const date of dates) expect(date).toBe(isAtom ? updated : "Wed, 02 Jan 2030 03:04:05 GMT")
    if (!isAtom) {
      expect(entries.map((entry) => childText(entry, "dc:creator")))
        .toEqual(authors.map((author) => author ?? "restante"))
      return
    }
    expect(childText(childOf(channel, "author") ?? channel, "name")).toBe("restante")
    expect(
      entries.map((entry) => childOf(entry, "author")).map((author) =>
        author === undefined
          ? undefined
          : [childText(author, "name"), childText(author, "uri")]
      )
    ).toEqual([
      undefined,
      ["https://bücher.example/#me", "https://xn--bcher-kva.example/#me"],
      ["urn:x-bob:1", undefined],
      ["me", undefined]
    ])
  })

  it("says what it has lost in an element that its format has, once", () => {
    const notice = "Earlier notifications of this page have been removed."
    const { channel, document } = read(kind, { ...feedOf([]), title: "AT&T", notice })
    const name = kind === "Atom" ? "subtitle" : "description"
    expect(childrenOf(channel, name).map(textOf))
      .toEqual([kind === "Atom" ? notice : `AT&amp;T. ${notice}`])
    // The validator warns of elements of other namespaces.
    expect(document.match(/xmlns[^=]*="[^"]*"/g)).toEqual(
      kind === "Atom"
        ? ["xmlns=\"http://www.w3.org/2005/Atom\""]
        : [
          "xmlns:atom=\"http://www.w3.org/2005/Atom\"",
          "xmlns:dc=\"http://purl.org/dc/elements/1.1/\""
        ]
    )
    const whole = read(kind, feedOf([])).channel
    expect(childText(whole, "subtitle") ?? childText(whole, "description"))
      .toBe(kind === "Atom" ? undefined : "News")
  })

  it("is valid without entries", () => {
    const { channel, entries } = read(kind, feedOf([]))
    expect(entries).toEqual([])
    const needed = kind === "Atom"
      ? ["id", "title", "updated", "author", "link"]
      : ["title", "link", "description", "atom:link"]
    for (const name of needed) expect(childOf(channel, name)).toBeDefined()
  })
})

it("gives an IPv6 address to readers of Atom only: RSS follows RFC 2396", () => {
  const url = "http://[::1]:8080/a[b]"
  const feed = feedOf([entryOf(1, { url })])
  const [inAtom] = read("Atom", feed).entries
  const [inRss] = read("RSS", feed).entries
  expect(inAtom && childOf(inAtom, "link")?.attributes["href"]).toBe("http://[::1]:8080/a%5Bb%5D")
  expect(inRss && childText(inRss, "link")).toBe(entryOf(1).id)
})
