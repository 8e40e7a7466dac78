/**
 * A listing of notifications as Atom (RFC 4287) and as RSS 2.0, by the rules of the W3C feed
 * validator. Senders choose the texts and addresses of a notification, so that a feed holds both in
 * a form that its format allows.
 */
import { parseUrl } from "../../actors/index.ts"
import { html, type PageLink } from "./html/index.ts"
import { element, writeDocument } from "./xml/index.ts"

/** One notification of a feed. `id` is a URI that never changes; times are RFC 3339. */
export interface FeedEntry {
  readonly id: string
  readonly title: string
  readonly received: string
  readonly url?: string | undefined
  readonly author?: string | undefined
}

/**
 * A feed; `href` identifies it and is the address of its page for people. Entries are in the
 * caller's order. Readers show `notice`, a sentence, beside its title.
 */
export interface Feed {
  readonly href: string
  readonly title: string
  readonly notice?: string | undefined
  readonly updated: string
  readonly entries: ReadonlyArray<FeedEntry>
}

const atomNamespace = "http://www.w3.org/2005/Atom"

const creatorNamespace = "http://purl.org/dc/elements/1.1/"

/** The author of what names no other. */
const service = "restante"

/* Texts. */

// eslint-disable-next-line no-control-regex
const controls = /[\u007f-\u009f]/g

const noncharacters = /[\ufffd\p{Noncharacter_Code_Point}]/gu

/** A text without the characters that HTML forbids, though XML allows them. */
const shownText = (text: string): string =>
  text.replace(controls, " ").replace(noncharacters, "?").trim()

/** A title is one line. */
const titleOf = (text: string, otherwise: string): string =>
  shownText(text).replace(/\s+/g, " ") || otherwise

const untitled = "(no description)"

/** Plain text as HTML. */
const toHtml = (text: string): string => html`${text}`.text

/**
 * A text construct of Atom (RFC 4287 §3.1). Some readers take plain text with an end tag or a
 * reference for HTML, so that such a text is written as HTML.
 */
const atomText = (name: string, text: string) =>
  /<\/\w|&#?\w/.test(text)
    ? element(name, { type: "html" }, toHtml(text))
    : element(name, {}, text)

/**
 * A title of RSS cannot state whether it is HTML (RSS Best Practices Profile §4.1.1.20.4). One with
 * an end tag is taken for HTML; it leaves out its tags, which the description holds.
 */
const rssTitle = (text: string, otherwise: string): string => {
  const title = titleOf(text, otherwise)
  return /<\/\w/.test(title)
    ? titleOf(title.replace(/<\/?[a-z][^<>]*>?/gi, ""), otherwise)
    : title
}

/* Addresses. */

/** The schemes that readers open; a notification with another address links to itself. */
const linkedSchemes: ReadonlyArray<string> = ["http:", "https:", "ftp:", "mailto:"]

const notInUri = /[^A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]/g

/**
 * The absolute URI (RFC 3986) of a reference, percent-encoded, its host in ASCII (RFC 3987 §3.1).
 * Undefined for one that readers cannot open.
 */
const linkOf = (reference: string, base: string): string | undefined => {
  const url = reference === "" ? undefined : parseUrl(reference, base)
  if (url === undefined) return undefined
  const { href, protocol } = url
  if (!linkedSchemes.includes(protocol)) return undefined
  // The brackets of an IPv6 address stay.
  const [, authority = "", rest = ""] = /^([a-z]+:(?:\/\/[^/?#]*)?)(.*)$/s.exec(href) ?? []
  return authority + rest.replace(/%(?![0-9A-Fa-f]{2})/g, "%25").replace(
    notInUri,
    encodeURIComponent
  )
}

/** The message of an entry, or the notification itself. */
const messageOf = ({ id, url = "" }: FeedEntry, { href }: Feed): string => linkOf(url, href) ?? id

/**
 * This page of a feed and its other representations, the first and the next page (RFC 5005 §3) and
 * the hub (WebSub §4).
 */
const feedRelations: ReadonlyArray<string> = ["self", "alternate", "first", "next", "hub"]

/** The links of a feed as Atom elements; RSS uses them too. */
const linksOf = (links: ReadonlyArray<PageLink>, name: string) =>
  links.filter(({ rel }) => feedRelations.includes(rel))
    .map(({ href, rel, type }) => element(name, { rel, href, type }))

/* Documents. */

const optional = (name: string, text: string | undefined) =>
  text === undefined ? undefined : element(name, {}, text)

const atomAuthor = (author: string) => {
  if (author === "") return undefined
  const uri = linkOf(author, author)
  return element("author", {}, element("name", {}, author), optional("uri", uri))
}

const atomEntry = (entry: FeedEntry, feed: Feed) => {
  const text = shownText(entry.title)
  return element(
    "entry",
    {},
    element("id", {}, entry.id),
    atomText("title", titleOf(entry.title, untitled)),
    element("published", {}, entry.received),
    element("updated", {}, entry.received),
    atomAuthor(shownText(entry.author ?? "")),
    element("link", { rel: "alternate", href: messageOf(entry, feed) }),
    atomText("summary", text || untitled)
  )
}

/** RFC 4287 §4.1.1: the feed's author applies to entries without one. */
export const toAtom = (feed: Feed, links: ReadonlyArray<PageLink>): string =>
  writeDocument(element(
    "feed",
    { xmlns: atomNamespace },
    element("id", {}, feed.href),
    atomText("title", titleOf(feed.title, feed.href)),
    feed.notice === undefined ? undefined : atomText("subtitle", feed.notice),
    element("updated", {}, feed.updated),
    element("author", {}, element("name", {}, service)),
    ...linksOf(links, "link"),
    ...feed.entries.map((entry) => atomEntry(entry, feed))
  ))

/** RSS needs a description of a feed, which is HTML. */
const rssDescription = ({ href, notice, title }: Feed): string => {
  const named = titleOf(title, href)
  return toHtml(notice === undefined ? named : `${named}. ${notice}`)
}

/** RSS dates follow RFC 822, with a year of four digits. */
const rssDate = (time: string): string | undefined => {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? undefined : date.toUTCString()
}

const rssItem = (entry: FeedEntry, feed: Feed) => {
  const text = shownText(entry.title)
  const message = messageOf(entry, feed)
  return element(
    "item",
    {},
    element("title", {}, rssTitle(entry.title, untitled)),
    // The description of an item is HTML; that of a notification is plain text.
    text === "" ? undefined : element("description", {}, toHtml(text)),
    // RSS names RFC 2396 for its addresses, which has no IPv6 address.
    element("link", {}, message.includes("[") ? entry.id : message),
    element("guid", { isPermaLink: "true" }, entry.id),
    element("dc:creator", {}, shownText(entry.author ?? "") || service),
    optional("pubDate", rssDate(entry.received))
  )
}

/**
 * RSS Best Practices Profile §4.1.1.20.4: hexadecimal references for `&` and `<` tell readers that
 * a title is plain text.
 */
const withHexReferences = (document: string): string =>
  document.replaceAll("&amp;", "&#x26;").replaceAll("&lt;", "&#x3C;")

export const toRss = (feed: Feed, links: ReadonlyArray<PageLink>): string =>
  withHexReferences(writeDocument(element(
    "rss",
    { version: "2.0", "xmlns:atom": atomNamespace, "xmlns:dc": creatorNamespace },
    element(
      "channel",
      {},
      element("title", {}, rssTitle(feed.title, feed.href)),
      element("link", {}, feed.href),
      element("description", {}, rssDescription(feed)),
      optional("lastBuildDate", rssDate(feed.updated)),
      ...linksOf(links, "atom:link"),
      ...feed.entries.map((entry) => rssItem(entry, feed))
    )
  )))
