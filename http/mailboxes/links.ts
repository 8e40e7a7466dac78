/** Where a page of a mailbox leads: its other pages, its hub, its feeds, where to deposit. */
import type { Link } from "../html/layout.ts"
import type { ListingPage, ListingQuery } from "./listing.ts"
import { inboxRel, type MailboxRef } from "./reader.ts"

/** Where the listing goes on; undefined on its last page. */
export const nextOf = (
  place: MailboxRef,
  page: ListingPage,
  query: ListingQuery
): string | undefined => {
  if (!page.more) return undefined
  const limit = query.limit === undefined ? "" : `&limit=${query.limit}`
  return page.older === undefined
    ? `${place.here}?since=${encodeURIComponent(page.time)}${limit}`
    : `${place.here}?before=${page.older}${limit}`
}

/** What a feed calls its own address: the topic, or the page of it. */
export const selfOf = (place: MailboxRef, { before }: ListingQuery): string =>
  before === undefined ? place.href : `${place.here}?before=${before}`

/** What anybody finds here: where to deposit, as the two protocols ask for it. */
export const placeLinks = (place: MailboxRef): ReadonlyArray<Link> => [
  { rel: "mailbox", href: place.href },
  { rel: inboxRel, href: place.href }
]

export const feedLinks = (place: MailboxRef): ReadonlyArray<Link> => [
  { rel: "alternate", href: place.here, type: "application/atom+xml" },
  { rel: "alternate", href: place.here, type: "application/rss+xml" }
]

/** `hub` and `self` are where, and as what, a WebSub subscriber subscribes (WebSub §4). */
export const linksOf = (
  place: MailboxRef,
  { older }: ListingPage,
  next: string | undefined
): ReadonlyArray<Link> => [
  ...placeLinks(place),
  { rel: "hub", href: `${place.here}/registrations` },
  { rel: "self", href: place.href },
  ...next === undefined
    ? []
    : [{
      rel: "next",
      href: next,
      title: older === undefined ? "Later notifications" : "Older notifications"
    }],
  ...feedLinks(place)
]
