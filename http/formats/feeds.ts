/** A listing of notifications as Atom (RFC 4287) and as RSS 2.0. */
import { html } from "./html/index.ts"
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
 * A feed; `href` identifies it and is the address of its first page. Entries are in the caller's
 * order. `next` is the next page (RFC 5005 §3), `hub` the WebSub hub (WebSub §4).
 */
export interface Feed {
  readonly href: string
  /** The address of this page, if it is not `href`. */
  readonly self?: string | undefined
  readonly hub?: string | undefined
  readonly title: string
  readonly updated: string
  readonly next?: string | undefined
  readonly entries: ReadonlyArray<FeedEntry>
}

const atomNamespace = "http://www.w3.org/2005/Atom"

/** The links of a feed as Atom elements; RSS uses them too. */
const linksOf = (feed: Feed, name: string, type: string) => [
  element(name, { rel: "self", href: feed.self ?? feed.href, type }),
  ...feed.hub === undefined ? [] : [element(name, { rel: "hub", href: feed.hub })],
  ...feed.next === undefined ? [] : [element(name, { rel: "next", href: feed.next })]
]

/** RFC 4287 §4.1.1: the feed's author applies to entries without one. */
export const toAtom = (feed: Feed): string =>
  writeDocument(element(
    "feed",
    { xmlns: atomNamespace },
    element("id", {}, feed.href),
    element("title", {}, feed.title),
    element("updated", {}, feed.updated),
    element("author", {}, element("name", {}, "restante")),
    ...linksOf(feed, "link", "application/atom+xml"),
    ...feed.entries.map((entry) =>
      element(
        "entry",
        {},
        element("id", {}, entry.id),
        element("title", {}, entry.title === "" ? "(no description)" : entry.title),
        element("published", {}, entry.received),
        element("updated", {}, entry.received),
        entry.author === undefined
          ? undefined
          : element("author", {}, element("name", {}, entry.author)),
        element("link", { rel: "alternate", href: entry.url || entry.id }),
        element("summary", {}, entry.title)
      )
    )
  ))

/** RSS dates follow RFC 822, with a year of four digits. */
const rssDate = (time: string): string | undefined => {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? undefined : date.toUTCString()
}

const optional = (name: string, text: string | undefined) =>
  text === undefined ? undefined : element(name, {}, text)

/** The description of an RSS item is HTML; that of a notification is plain text. */
const toHtml = (text: string): string => html`${text}`.text

export const toRss = (feed: Feed): string =>
  writeDocument(element(
    "rss",
    { version: "2.0", "xmlns:atom": atomNamespace },
    element(
      "channel",
      {},
      element("title", {}, feed.title),
      element("link", {}, feed.href),
      element("description", {}, feed.title),
      optional("lastBuildDate", rssDate(feed.updated)),
      ...linksOf(feed, "atom:link", "application/rss+xml"),
      ...feed.entries.map((entry) =>
        element(
          "item",
          {},
          element("title", {}, entry.title),
          element("description", {}, toHtml(entry.title)),
          element("link", {}, entry.url || entry.id),
          element("guid", { isPermaLink: "true" }, entry.id),
          optional("pubDate", rssDate(entry.received))
        )
      )
    )
  ))
