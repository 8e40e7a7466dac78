/**
 * A page of the newest notifications, and from there back: what feeds are (RFC 5005 §3), and what
 * a reader without a cursor of its own wants of any list of URIs.
 */
import { Effect } from "effect"
import { type CachedContent, cachedKey,
  cachedTable } from "../../../actors/background-task/index.ts"
import { retrievedAtOnceMax } from "../../../actors/index.ts"
import { decodeItem, formatCursor, isRemoval, itemAtMs, type MailboxMessage, type MailboxView,
  notificationId, parseSince, type Since, startAfter } from "../../../actors/mailbox/index.ts"
import { StorageUnavailable } from "../../../runtime/index.ts"
import type { PageLink } from "../../formats/html/index.ts"
import { linkedDataType, type MediaType } from "../../formats/index.ts"
import { type Element, element, escapeAttribute, parseFragment,
  writeElement } from "../../formats/xml/index.ts"
import { datedAfterMs, latestScannedMax, pageEntriesDefault, pageEntriesMax } from "../../limits.ts"
import { absoluteUri, type Call, type HandlerFailure, httpError, readQuery,
  type Service } from "../../pipeline/index.ts"
import { inboxRel, type MailboxRef } from "./mailbox-access.ts"

/** What a request for a listing asks for. */
export interface ListingQuery {
  readonly since: Since | undefined
  /** Of pages of the newest: those with lower numbers. */
  readonly before?: number | undefined
  /** Undefined when not asked for. */
  readonly limit: number | undefined
  /** A browser's wish to read rather than to deposit. */
  readonly read: boolean
}

export const wholeQuery: ListingQuery = { since: undefined, limit: undefined, read: true }

/** A cursor or time; a `+` that a form's decoding made a space is one again. */
export const sinceOf = (text: string): Since | undefined =>
  parseSince(text.replace(/ (\d\d:\d\d)$/, "+$1"))

/** The query of a listing; fails with 400. */
export const listingQuery = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<ListingQuery, HandlerFailure> {
  const fields = yield* readQuery(call)
  const sinceText = fields.get("since")
  const since = sinceText === undefined ? undefined : sinceOf(sinceText)
  if (sinceText !== undefined && since === undefined) {
    return yield* httpError(
      "malformed",
      "since must be the time of an earlier answer, or RFC 3339's"
    )
  }
  const beforeText = fields.get("before")
  if (beforeText !== undefined && !/^[1-9]\d{0,11}$/.test(beforeText)) {
    return yield* httpError("malformed", "before must come from a link of a page")
  }
  const before = beforeText === undefined ? undefined : Number(beforeText)
  const limitText = fields.get("limit")
  const limit = limitText === undefined ? undefined : Number(limitText)
  if (
    limit !== undefined && !(/^\d{1,4}$/.test(limitText ?? "") && limit >= 1
      && limit <= pageEntriesMax)
  ) {
    return yield* httpError("malformed", `limit must be a whole number from 1 to ${pageEntriesMax}`)
  }
  return { since, before, limit, read: fields.has("read") }
})

/** One notification of a listing. */
export interface MailboxEntry {
  readonly n: number
  readonly atMs: number
  readonly id: string
  /** The random part of the id. */
  readonly idRandom: string
  /** RFC 3339. */
  readonly received: string
  /** The `item` element, and what came beside it. */
  readonly fragment: string
}

/** One page of a listing, oldest first. */
export interface ListingPage {
  readonly mailbox: MailboxView
  readonly entries: ReadonlyArray<MailboxEntry>
  /** The cursor after all that the page covers. */
  readonly time: string
  readonly more: boolean
  /** Of a page of the newest: what is older has lower numbers than this. */
  readonly older?: number
}

let secondMs = -1

let secondText = ""

/** RFC 3339 of a time; neighbors in a log are mostly of one second, which is written once. */
const receivedOf = (atMs: number): string => {
  const ms = atMs % 1000
  if (atMs - ms !== secondMs) {
    secondMs = atMs - ms
    secondText = new Date(secondMs).toISOString().slice(0, 20)
  }
  return `${secondText}${String(ms).padStart(3, "0")}Z`
}

/** The entry of a log item. */
export const entryOf = (
  { n, value }: { readonly n: number; readonly value: string }
): MailboxEntry => {
  const { atMs, fragment, idRandom } = decodeItem(value)
  return {
    n,
    atMs,
    id: notificationId(n, idRandom),
    idRandom,
    received: receivedOf(atMs),
    fragment
  }
}

/** The number after which a listing begins. */
export const startOf = (
  service: Service,
  place: MailboxRef,
  since: Since | undefined,
  head: number
): Effect.Effect<number, HandlerFailure> => {
  if (since === undefined) return Effect.succeed(0)
  if (since._tag === "After") return Effect.succeed(Math.min(since.n, head))
  const readFrom = async (n: number) => {
    const [item] = await Effect.runPromise(service.system.read(place.to, n, 1))
    return item === undefined ? undefined : { n: item.n, atMs: itemAtMs(item.value) }
  }
  return Effect.tryPromise({
    try: () => startAfter(since, head, readFrom),
    catch: (error) => new StorageUnavailable({ detail: String(error) })
  })
}

/**
 * Reads a page. Whatever was deposited before `mailbox` was described is on it, or after `time`:
 * log numbers follow the order of commits, so that no later one is seen before an earlier.
 */
export const readPage = Effect.fnUntraced(function*(
  service: Service,
  place: MailboxRef,
  mailbox: MailboxView,
  query: ListingQuery
): Effect.fn.Return<ListingPage, HandlerFailure> {
  const limit = query.limit ?? pageEntriesDefault
  // Of what was removed there may be marks, which are not read again and again.
  const from = yield* startOf(service, place, query.since, mailbox.head)
  const after = Math.max(from, mailbox.removedUpTo ?? 0)
  const items = after >= mailbox.head
    ? []
    : yield* service.system.read(place.to, after + 1, limit + 1)
  const more = items.length > limit
  const covered = more ? items.slice(0, limit) : items
  const last = covered.at(-1)
  const lastAtMs = last === undefined ? 0 : itemAtMs(last.value)
  const time = more && last !== undefined
    ? formatCursor(lastAtMs, last.n)
    : formatCursor(
      Math.max(mailbox.lastAtMs, lastAtMs),
      Math.max(mailbox.head, last?.n ?? 0)
    )
  // What tells of a removal is for registrations; it counts for the page's limit and cursor only.
  const stored = covered.filter(({ value }) => !isRemoval(value)).map(entryOf)
  const entries = yield* withCopies(service, place.name, mailbox, stored)
  return { mailbox, entries, time, more }
})

/** The start tag of a notification up to its id, in which nothing is to be escaped. */
export const openingOf = (place: MailboxRef): string =>
  `<notification href="${escapeAttribute(place.here)}/notifications/`

export const afterOpening = ({ fragment, id, received }: MailboxEntry): string =>
  `${id}" received="${received}">${fragment}</notification>`

/** One notification as XML, on its own. */
export const entryXml = (place: MailboxRef, entry: MailboxEntry): string =>
  openingOf(place) + afterOpening(entry)

/** One notification as an element. */
export const entryElement = (
  place: MailboxRef,
  { fragment, id, received }: MailboxEntry
): Element =>
  element(
    "notification",
    { href: `${place.here}/notifications/${id}`, received },
    ...parseFragment(fragment)
  )

/** Numbers of notifications, both ends inclusive. */
export interface NumberSpan {
  readonly from: number
  readonly to: number
}

/** The spans of entries, each of no more than a mailbox takes at once. */
export const spansOf = (
  entries: ReadonlyArray<{ readonly n: number }>
): ReadonlyArray<NumberSpan> => {
  const spans: Array<NumberSpan> = []
  for (let at = 0; at < entries.length; at += retrievedAtOnceMax) {
    const from = entries[at]?.n
    const to = entries[Math.min(at + retrievedAtOnceMax, entries.length) - 1]?.n
    if (from !== undefined && to !== undefined) spans.push({ from, to })
  }
  return spans
}

/** Tells the mailbox which notifications a reader was shown; nobody waits for it. */
export const tellRetrieved = (
  service: Service,
  place: MailboxRef,
  spans: ReadonlyArray<NumberSpan>
): void => {
  for (const { from, to } of spans) {
    const message: MailboxMessage = { _tag: "Retrieved", from, to }
    service.system.askByCallback(place.to, message, () => {})
  }
}

/* Where a page of a mailbox leads: its other pages, its hub, its feeds, where to deposit. */

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
export const placeLinks = (place: MailboxRef): ReadonlyArray<PageLink> => [
  { rel: "mailbox", href: place.href },
  { rel: inboxRel, href: place.href }
]

export const feedLinks = (href: string): ReadonlyArray<PageLink> => [
  { rel: "alternate", href, type: "application/atom+xml" },
  { rel: "alternate", href, type: "application/rss+xml" }
]

/** `hub` and `self` are where, and as what, a WebSub subscriber subscribes (WebSub §4). */
export const linksOf = (
  place: MailboxRef,
  { older }: ListingPage,
  next: string | undefined
): ReadonlyArray<PageLink> => [
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
  ...feedLinks(place.here)
]

/*
 * Copies that eager fetches have kept (protocol §1.2): shown with their notification as
 * `<cached href type length/>`.
 */

const numberOf = (key: string): number => Number(key.slice(key.lastIndexOf("/") + 1))

const copyOf = (service: Service, value: string): string => {
  // Written by the background task that keeps the copy, and by nobody else.
  const { contentId, lengthBytes, type } = JSON.parse(value) as CachedContent
  const href = absoluteUri(service, `/content/${contentId}`)
  return writeElement(element("cached", { href, type, length: lengthBytes }))
}

/** The entries, ascending, each with its copy if there is one. */
export const withCopies = (
  service: Service,
  name: string,
  { fetched }: MailboxView,
  entries: ReadonlyArray<MailboxEntry>
): Effect.Effect<ReadonlyArray<MailboxEntry>, HandlerFailure> => {
  const first = entries[0]
  // Nothing is looked for in a mailbox that has never fetched.
  if (fetched === 0 || first === undefined) return Effect.succeed(entries)
  const range = { prefix: `${name}/`, after: cachedKey(name, first.n - 1), limit: entries.length }
  return Effect.map(service.records.range(cachedTable, range), (rows) => {
    const copies = new Map(rows.map(({ key, value }) => [numberOf(key), value]))
    return entries.map((entry) => {
      const copy = copies.get(entry.n)
      if (copy === undefined) return entry
      return { ...entry, fragment: entry.fragment + copyOf(service, copy) }
    })
  })
}

/* The listing of a mailbox (A11): reading a page of its log, and the view of it. */

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
