/** A page of a mailbox as a feed: the newest notification first. */
import type { Feed } from "../feeds.ts"
import type { ListingPage } from "./listing.ts"
import type { MailboxRef } from "./reader.ts"
import { summaryOf } from "./summary.ts"

/** The feed of a page. Its entries are named by their public URIs, which never change. */
export const feedOf = (
  place: MailboxRef,
  page: ListingPage,
  title: string,
  links: { readonly self: string; readonly next: string | undefined }
): Feed => ({
  href: place.href,
  ...links,
  hub: `${place.here}/registrations`,
  title,
  updated: new Date(page.mailbox.lastAtMs).toISOString(),
  entries: page.entries.map((entry) => {
    const { description, from, url } = summaryOf(place, entry)
    const id = `${place.href}/notifications/${entry.id}`
    return { id, title: description, received: entry.received, url, author: from }
  }).toReversed()
})
