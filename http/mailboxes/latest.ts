/**
 * A page of the newest notifications, and from there back: what feeds are (RFC 5005 §3), and what
 * a reader without a cursor of its own wants of any list of URIs.
 */
import { Effect } from "effect"
import { formatCursor } from "../../actors/mailbox/cursor.ts"
import { isRemoval } from "../../actors/mailbox/item.ts"
import type { MailboxView } from "../../actors/mailbox/protocol.ts"
import type { HandlerFailure } from "../failures.ts"
import { datedAfterMs, latestScannedMax, pageEntriesDefault, pageEntriesMax } from "../limits.ts"
import type { MediaType } from "../negotiate.ts"
import { linkedDataType } from "../representations.ts"
import type { Service } from "../service.ts"
import { withCopies } from "./copies.ts"
import { entryOf, type ListingPage, type ListingQuery } from "./listing.ts"
import type { MailboxRef } from "./reader.ts"

const feeds: ReadonlyArray<MediaType> = ["application/atom+xml", "application/rss+xml"]

/** What shows the newest first when it is asked for without a cursor. */
export const latestTypes: ReadonlyArray<MediaType> = [...feeds, linkedDataType]

/** Whether the type is a feed's. */
export const isFeed = (type: MediaType | undefined): boolean =>
  type !== undefined && feeds.includes(type)

/**
 * The date of a feed: that of its last notification, as soon as no other can have the same. It
 * tells what is new and not what was removed; the entity tag tells both.
 */
export const datedFeed = (
  { nowMs }: Service,
  { lastAtMs }: MailboxView
): { readonly lastModifiedMs?: number } =>
  nowMs() - lastAtMs < datedAfterMs ? {} : { lastModifiedMs: lastAtMs }

/**
 * Reads the last notifications before number `query.before`, or of all. Where most of a log is
 * removed it looks back over a bounded part of it: a page may be short and have an older one.
 */
export const readLatest = Effect.fnUntraced(function*(
  service: Service,
  place: MailboxRef,
  mailbox: MailboxView,
  query: ListingQuery
): Effect.fn.Return<ListingPage, HandlerFailure> {
  const limit = query.limit ?? pageEntriesDefault
  const end = Math.min(query.before ?? mailbox.head + 1, mailbox.head + 1)
  // Of the newest page it is known how many there can be.
  const most = end > mailbox.head ? mailbox.notifications : limit + 1
  let found: ReadonlyArray<{ readonly n: number; readonly value: string }> = []
  let low = end
  for (
    let span = limit + 1;
    low > 1 && found.length < Math.min(limit + 1, most) && end - low < latestScannedMax;
    span = Math.min(span * 2, pageEntriesMax)
  ) {
    const from = Math.max(1, low - span)
    const above = low
    const items = yield* service.system.read(place.to, from, above - from)
    found = [...items.filter(({ n, value }) => n < above && !isRemoval(value)), ...found]
    low = from
  }
  const isWhole = end > mailbox.head && found.length >= most
  const covered = found.slice(-limit)
  const entries = yield* withCopies(service, place.name, mailbox, covered.map(entryOf))
  const more = found.length > limit || (low > 1 && !isWhole)
  const older = found.length > limit ? covered[0]?.n : low
  return {
    mailbox,
    entries,
    time: formatCursor(mailbox.lastAtMs, mailbox.head),
    more,
    ...more && older !== undefined ? { older } : {}
  }
})
