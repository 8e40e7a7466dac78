/** A listing of notifications as Atom (RFC 4287) and as RSS 2.0. */

import { element, writeDocument } from "./xml.ts"

/** One notification of a feed. `id` is a URI that never changes; times are RFC 3339. */
export interface FeedEntry {
  readonly id: string
  readonly title: string
  readonly received: string
  readonly url?: string | undefined
  readonly author?: string | undefined
}

/** A feed; `href` is where it is served, newest entry first or last as the caller lists them. */
export interface Feed {
  readonly href: string
  readonly title: string
  readonly updated: string
  readonly next?: string | undefined
  readonly entries: ReadonlyArray<FeedEntry>
}

const atomNamespace = "http://www.w3.org/2005/Atom"

/** RFC 4287 §4.1.1: the feed's author stands for entries that name none. */
export const toAtom = (feed: Feed): string =>
  writeDocument(element(
    "feed",
    { xmlns: atomNamespace },
    element("id", {}, feed.href),
    element("title", {}, feed.title),
    element("updated", {}, feed.updated),
    element("author", {}, element("name", {}, "restante")),
    element("link", { rel: "self", href: feed.href, type: "application/atom+xml" }),
    feed.next === undefined ? undefined : element("link", { rel: "next", href: feed.next }),
    ...feed.entries.map((entry) =>
      element(
        "entry",
        {},
        element("id", {}, entry.id),
        element("title", {}, entry.title === "" ? "(no description)" : entry.title),
        element("updated", {}, entry.received),
        entry.author === undefined
          ? undefined
          : element("author", {}, element("name", {}, entry.author)),
        element("link", { rel: "alternate", href: entry.url || entry.id }),
        element("summary", {}, entry.title)
      )
    )
  ))

/** RSS wants the dates of RFC 822 with four digits of year. */
const rssDate = (time: string): string | undefined => {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? undefined : date.toUTCString()
}

const optional = (name: string, text: string | undefined) =>
  text === undefined ? undefined : element(name, {}, text)

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
      element("atom:link", { rel: "self", href: feed.href, type: "application/rss+xml" }),
      ...feed.entries.map((entry) =>
        element(
          "item",
          {},
          element("title", {}, entry.title),
          element("description", {}, entry.title),
          element("link", {}, entry.url || entry.id),
          element("guid", { isPermaLink: "true" }, entry.id),
          optional("pubDate", rssDate(entry.received))
        )
      )
    )
  ))
