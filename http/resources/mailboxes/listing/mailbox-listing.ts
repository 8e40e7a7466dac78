/**
 * Pages of a mailbox's log (A11): from a cursor on, oldest first; or the newest page and from there
 * back, for people, feeds (RFC 5005 §3) and lists of URIs.
 */
import { Effect } from "effect"
import { type CachedContent, cachedKey,
  cachedTable } from "../../../../actors/background-task/index.ts"
import { retrievedPerDecisionMax } from "../../../../actors/index.ts"
import { covers, decodeItem, formatCursor, isRemoval, itemAtMs, type MailboxMessage,
  type MailboxView, notificationId, type Since } from "../../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../../runtime/index.ts"
import { isForReader } from "../../../auth/index.ts"
import type { PageLink } from "../../../formats/html/index.ts"
import { linkedDataType, type MediaType } from "../../../formats/index.ts"
import { element, escapeAttribute, writeElement } from "../../../formats/xml/index.ts"
import { answerOfStoreCharsMax, datedAfterMs, latestScannedMax, mixedPageReadsMax, pageCharsMax,
  pageEntriesDefault, pageEntriesMax, pageFreeTagsChars, pageReadItems, pageTagChars,
  searchScannedCharsMax, searchScannedMax } from "../../../limits.ts"
import { type Call, contentUri, failRefused, firstPage, type HandlerFailure, httpError, readLimit,
  readQuery, type Service } from "../../../pipeline/index.ts"
import type { ReplyHeaders } from "../../../wire/index.ts"
import { parseListingSince, positionSince, unknownPosition } from "./listing-position.ts"
import { filterNames, filterText, type MailboxFilter, passes,
  readFilter } from "./mailbox-filter.ts"
import { type BoundedItems, describeMailbox, inboxRel, type MailboxRef, readBoundedItems,
  type ReaderCall } from "../mailbox-access.ts"

/** The parameters of a request for a listing. */
export interface ListingQuery {
  readonly since: Since | undefined
  /** On pages of the newest: only notifications with lower numbers. */
  readonly before?: number | undefined
  /** Undefined where the request names none. */
  readonly limit: number | undefined
  /** Whether a browser asks for the listing instead of the page that deposits. */
  readonly read: boolean
  /** Whether the browser asks for the mailbox's password. */
  readonly isDialogWanted?: boolean
  /** Whether a stream also reports changes of what is there: marks, removals and settings. */
  readonly areChangesWanted?: boolean
  /** Only some of the notifications, the newest first. */
  readonly filter?: MailboxFilter | undefined
}

export const wholeQuery: ListingQuery = { since: undefined, limit: undefined, read: true }

/** The query of a listing; fails with 400. */
export const readListingQuery = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<ListingQuery, HandlerFailure> {
  const fields = yield* readQuery(call)
  const sinceText = fields.get("since")
  const since = sinceText === undefined ? undefined : parseListingSince(sinceText)
  if (sinceText !== undefined && since === undefined) {
    return yield* httpError(
      "malformed",
      "since must be the time of an earlier answer, or RFC 3339's; correct it, or read without it",
      firstPage
    )
  }
  const beforeText = fields.get("before")
  if (beforeText !== undefined && !/^[1-9]\d{0,11}$/.test(beforeText)) {
    return yield* httpError(
      "malformed",
      "before must come from a link of a page; follow that link, or read without before",
      firstPage
    )
  }
  const before = beforeText === undefined ? undefined : Number(beforeText)
  const changes = fields.get("changes") ?? "true"
  if (changes !== "true") {
    return yield* httpError("malformed", "changes must be true, or absent", firstPage)
  }
  const read = fields.has("read")
  const isDialogWanted = fields.get("read") === "password"
  const filter = yield* readFilter(fields)
  if (filter !== undefined && since !== undefined) {
    return yield* httpError("malformed", `${filterNames} need a listing without since`, firstPage)
  }
  return {
    since,
    before,
    limit: yield* readLimit(fields),
    read,
    isDialogWanted,
    areChangesWanted: fields.has("changes"),
    filter
  }
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
  /** Whether a reader has marked it as read. */
  readonly isRead?: boolean
}

/** One page of a listing, oldest first. */
export interface ListingPage {
  readonly view: MailboxView
  readonly entries: ReadonlyArray<MailboxEntry>
  /** The cursor after everything that the page covers. */
  readonly time: string
  readonly more: boolean
  /** Whether what followed the cursor of the request has been removed. */
  readonly isDiscarded?: boolean
  /** Whether it is a page of the newest, from which `before` leads back. */
  readonly isLatest?: boolean
  /** On a page of the newest: older notifications have lower numbers than this. */
  readonly older?: number
}

interface StoredItem {
  readonly n: number
  readonly value: string
}

const makeEntry = (
  { n, value }: StoredItem,
  formatTime: (atMs: number) => string
): MailboxEntry => {
  const { atMs, fragment, idRandom } = decodeItem(value)
  const id = notificationId(n, idRandom)
  return { n, atMs, id, idRandom, received: formatTime(atMs), fragment }
}

/** The entry of a log item. */
export const entryOf = (item: StoredItem): MailboxEntry =>
  makeEntry(item, (atMs) => new Date(atMs).toISOString())

/** The entries of log items. Neighbors mostly share their second, which is formatted once. */
const entriesOf = (items: ReadonlyArray<StoredItem>): ReadonlyArray<MailboxEntry> => {
  let secondMs = -1
  let secondText = ""
  const formatTime = (atMs: number): string => {
    const ms = atMs % 1000
    if (atMs - ms !== secondMs) {
      secondMs = atMs - ms
      secondText = new Date(secondMs).toISOString().slice(0, 20)
    }
    return `${secondText}${String(ms).padStart(3, "0")}Z`
  }
  return items.map((item) => makeEntry(item, formatTime))
}

const charsOf = (items: ReadonlyArray<StoredItem>): number =>
  items.reduce((chars, { value }) => chars + value.length, 0)

/** Whether the store returns these items from one read, and not from one for each part. */
const fitsOneAnswer = (items: ReadonlyArray<StoredItem>): boolean =>
  charsOf(items) <= answerOfStoreCharsMax

/** What a notification counts on a page that has `before` characters: also for its tags. */
export const charsOnPage = (text: string, before: number): number => {
  if (before + text.length <= pageFreeTagsChars) return text.length
  let chars = text.length
  for (let at = text.indexOf("<"); at !== -1; at = text.indexOf("<", at + 1)) chars += pageTagChars
  return chars
}

/** Whether a page of some notifications, of `chars` with the next one, has room for that one. */
export const hasRoom = (count: number, chars: number): boolean =>
  count === 0 || chars <= pageCharsMax

/** How many of the items fit on one page: `limit` at most, of `pageCharsMax`, at least one. */
const fittingCount = (items: Iterable<StoredItem>, limit: number): number => {
  let count = 0
  let chars = 0
  for (const { value } of items) {
    chars += charsOnPage(value, chars)
    if (count === limit || !hasRoom(count, chars)) break
    count++
  }
  return count
}

/** A page, and whether one read of the store has got it. */
interface ReadPage {
  readonly page: ListingPage
  readonly isOneRead: boolean
}

type PageReading = (
  service: Service,
  mailbox: MailboxRef,
  view: MailboxView,
  query: ListingQuery
) => Effect.Effect<ReadPage, HandlerFailure>

/** The reader's view of a mailbox as it is now. */
const currentView = (
  service: Service,
  mailbox: MailboxRef,
  { isOwner, read }: MailboxView
): Effect.Effect<MailboxView, HandlerFailure> =>
  Effect.map(failRefused(describeMailbox(service, mailbox)), (view) => ({
    ...view,
    isOwner,
    ...read === undefined ? {} : { read }
  }))

/**
 * Makes a page show the mailbox as it was at one moment, as a page that one read has got does.
 * Between several reads notifications may be removed: the page would show a removed one, and not
 * one that was removed later, or show it beside one that was deposited after the removal. Such a
 * page is read again, unless removals go on: they must not hold up a reader.
 */
const atOneMoment =
  (reading: PageReading) =>
  (service: Service, mailbox: MailboxRef, view: MailboxView, query: ListingQuery) =>
    Effect.gen(function*(): Effect.fn.Return<ListingPage, HandlerFailure> {
      let before = view
      for (let reads = 1;; reads++) {
        const { isOneRead, page } = yield* reading(service, mailbox, before, query)
        if (isOneRead || reads === mixedPageReadsMax) return page
        const after = yield* currentView(service, mailbox, view)
        const isSame = after.removed === before.removed && after.createdAtMs === before.createdAtMs
        if (isSame) return page
        before = after
      }
    })

/**
 * The items from a number on: `limit` at most, and few more than fit on a page. Where not all of
 * the log fits, one that does not is among them, which shows that there is a next page. `first`:
 * what is read of them.
 */
const readPageItems = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  from: number,
  limit: number,
  first: BoundedItems
): Effect.fn.Return<ReadonlyArray<StoredItem>, HandlerFailure> {
  const items: Array<StoredItem> = [...first.items]
  let { isEnd } = first
  while (
    !isEnd && items.length < limit && (items.length === 1 || charsOf(items) <= pageCharsMax)
  ) {
    const wanted = Math.min(limit - items.length, pageReadItems)
    const next = (items.at(-1)?.n ?? from - 1) + 1
    const charsMax = Math.max(1, pageCharsMax + 1 - charsOf(items))
    const read = yield* readBoundedItems(service, mailbox, next, wanted, charsMax)
    items.push(...read.items)
    isEnd = read.isEnd || read.items.length === 0
  }
  return items
})

/**
 * Reads a page. A notification that was deposited before `view` is on it or after its `time`: log
 * numbers follow the order of commits. Fails with 400 for a cursor that is not of this mailbox.
 */
export const readPage = atOneMoment(Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  view: MailboxView,
  query: ListingQuery
): Effect.fn.Return<ReadPage, HandlerFailure> {
  const limit = query.limit ?? pageEntriesDefault
  // Removed items may have left marks, which are skipped.
  const position = yield* positionSince(service, mailbox, view, query.since, limit + 1)
  const { after, following, state } = position
  if (state === "unknown") return yield* unknownPosition("since")
  const first = following ?? { items: [], isEnd: after >= view.head }
  const items = yield* readPageItems(service, mailbox, after + 1, limit + 1, first)
  const covered = items.slice(0, fittingCount(items, limit))
  const more = items.length > covered.length
  const last = covered.at(-1)
  const lastAtMs = last === undefined ? 0 : itemAtMs(last.value)
  const time = more && last !== undefined
    ? formatCursor(lastAtMs, last.n)
    : formatCursor(
      Math.max(view.lastAtMs, lastAtMs),
      Math.max(view.head, last?.n ?? 0)
    )
  // Marks of removals are for registrations; they count for the limit and the cursor only.
  const stored = entriesOf(covered.filter(({ value }) => !isRemoval(value)))
  const entries = yield* withMarks(service, mailbox.name, view, stored)
  // One read takes as many numbers as it is to return items, and goes on where some are removed.
  const end = Math.max(items.at(-1)?.n ?? 0, more ? 0 : view.head)
  return {
    page: { view, entries, time, more, isDiscarded: state === "discarded" },
    isOneRead: end - after <= Math.min(limit + 1, pageReadItems) && fitsOneAnswer(items)
  }
}))

/** The start tag of a notification up to its id; an id needs no escaping. */
export const openingOf = (mailbox: MailboxRef): string =>
  `<notification href="${escapeAttribute(mailbox.here)}/notifications/`

export const afterOpening = ({ fragment, id, isRead, received }: MailboxEntry): string =>
  `${id}" received="${received}"${isRead === true ? " read=\"true\"" : ""}>` +
  `${fragment}</notification>`

/** One notification as XML, on its own. */
export const entryXml = (mailbox: MailboxRef, entry: MailboxEntry): string =>
  openingOf(mailbox) + afterOpening(entry)

/** Numbers of notifications, both ends inclusive. */
export interface NumberSpan {
  readonly from: number
  readonly to: number
}

/** The spans of entries, each as long as one message to the mailbox may name. */
export const spansOf = (
  entries: ReadonlyArray<{ readonly n: number }>
): ReadonlyArray<NumberSpan> => {
  const spans: Array<NumberSpan> = []
  for (let at = 0; at < entries.length; at += retrievedPerDecisionMax) {
    const from = entries[at]?.n
    const to = entries[Math.min(at + retrievedPerDecisionMax, entries.length) - 1]?.n
    if (from !== undefined && to !== undefined) spans.push({ from, to })
  }
  return spans
}

/**
 * Reports to the mailbox which notifications the answer to a request has shown to a reader; does
 * not wait. `recorded` runs once the mailbox has recorded all of them.
 */
export const reportRetrieved = (
  { settings: { baseUrl }, system }: Service,
  { request }: Call,
  mailbox: MailboxRef,
  spans: ReadonlyArray<NumberSpan>,
  recorded: () => void = () => {}
): void => {
  if (!isForReader(request, baseUrl)) return
  let unrecorded = spans.length
  for (const { from, to } of spans) {
    const message: MailboxMessage = { _tag: "Retrieved", from, to }
    system.askByCallback(mailbox.to, message, (failure, reply) => {
      if (failure === undefined && !isRefusal(reply) && --unrecorded === 0) recorded()
    })
  }
}

/** Marks a notification whose page a browser shows to its user; does not wait. */
export const reportRead = ({ call, mailbox, reader, service }: ReaderCall, n: number): void => {
  if (!isForReader(call.request, service.settings.baseUrl)) return
  const message: MailboxMessage = { _tag: "MarkRead", from: n, to: n, reader }
  // A mark that is lost is set when the page is opened again.
  service.system.askByCallback(mailbox.to, message, () => {})
}

/* The links of a page. */

/** The URI of the next page; undefined on the last one. */
export const nextHref = (
  mailbox: MailboxRef,
  page: ListingPage,
  query: ListingQuery
): string | undefined => {
  if (!page.more) return undefined
  const limit = query.limit === undefined ? "" : `&limit=${query.limit}`
  return page.older === undefined
    ? `${mailbox.here}?since=${encodeURIComponent(page.time)}${limit}`
    : `${mailbox.here}?before=${page.older}${limit}${filterText(query.filter)}`
}

/**
 * The field of an answer, in every format, that has lost what followed the cursor of its request.
 * A feed and a list of URIs have no attribute for it.
 */
export const discardedFields = (isDiscarded: boolean | undefined): ReplyHeaders =>
  isDiscarded === true ? [["Discarded", "true"]] : []

/** What a page or a feed shows to people when it has lost what followed the cursor. */
export const discardedNotice = "Earlier notifications of this page have been removed."

/** The way on from such an answer: the listing without the cursor. */
export const firstPageLink = (href: string, limit: number | undefined): PageLink => ({
  rel: "first",
  href: limit === undefined ? href : `${href}?limit=${limit}`,
  title: "First page"
})

/** The way back from older notifications. */
const newestLink = (mailbox: MailboxRef, { filter, limit }: ListingQuery): PageLink => {
  const size = limit === undefined ? "" : `&limit=${limit}`
  const query = `${size}${filterText(filter)}`
  return {
    rel: "first",
    href: `${mailbox.here}${query.replace("&", "?")}`,
    title: "The newest notifications"
  }
}

/** The links to where anybody deposits, as this protocol and Linked Data Notifications name it. */
export const depositLinks = (mailbox: MailboxRef): ReadonlyArray<PageLink> => [
  { rel: "mailbox", href: mailbox.href },
  { rel: inboxRel, href: mailbox.href }
]

/** Whether the URI of a listing, its `rel="self"`, is a topic: the public one of the mailbox. */
const isTopic = (
  { secret }: MailboxRef,
  { before, filter, limit, since }: ListingQuery
): boolean => [secret, before, filter, limit, since].every((part) => part === undefined)

/** A WebSub subscriber subscribes at `hub` to the representation's own `self` (WebSub §4). */
export const pageLinks = (
  mailbox: MailboxRef,
  { isDiscarded, older }: ListingPage,
  query: ListingQuery,
  next: string | undefined
): ReadonlyArray<PageLink> => [
  ...depositLinks(mailbox),
  ...isTopic(mailbox, query) ? [{ rel: "hub", href: `${mailbox.href}/registrations` }] : [],
  ...isDiscarded === true ? [firstPageLink(mailbox.here, query.limit)] : [],
  ...query.before === undefined ? [] : [newestLink(mailbox, query)],
  ...next === undefined
    ? []
    : [{
      rel: "next",
      href: next,
      title: older === undefined ? "Later notifications" : "Older notifications"
    }]
]

/* Copies of eager fetches (protocol §1.2), served as `<cached href type length/>`. */

const numberOf = (key: string): number => Number(key.slice(key.lastIndexOf("/") + 1))

const copyOf = (service: Service, value: string): string => {
  // Only the task that stores the copy writes this record.
  const { contentId, lengthBytes, type } = JSON.parse(value) as CachedContent
  const href = contentUri(service, contentId)
  return writeElement(element("cached", { href, type, length: lengthBytes }))
}

/** The entries of a page, ascending, each with its read mark, and its copy if there is one. */
export const withMarks = (
  service: Service,
  name: string,
  view: MailboxView,
  entries: ReadonlyArray<MailboxEntry>
): Effect.Effect<ReadonlyArray<MailboxEntry>, HandlerFailure> => {
  const { read = [] } = view
  const marked = read.length === 0
    ? entries
    : entries.map((entry) => covers(read, entry.n) ? { ...entry, isRead: true } : entry)
  return withCopies(service, name, view, marked)
}

/** The entries, ascending, each with its copy if there is one. */
export const withCopies = (
  service: Service,
  name: string,
  { fetched }: MailboxView,
  entries: ReadonlyArray<MailboxEntry>
): Effect.Effect<ReadonlyArray<MailboxEntry>, HandlerFailure> => {
  const first = entries[0]
  // A mailbox that has never fetched has no copies.
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

/* The newest notifications. */

const feeds: ReadonlyArray<MediaType> = ["application/atom+xml", "application/rss+xml"]

/** The types that begin with the newest notification when a request has no cursor. */
export const latestTypes: ReadonlyArray<MediaType> = [...feeds, linkedDataType, "text/html"]

/** Whether the type is a feed. */
export const isFeed = (type: MediaType | undefined): boolean =>
  type !== undefined && feeds.includes(type)

/**
 * The date of a feed: the time of its last notification, once no other can have the same time. It
 * does not change with a removal; the entity tag does.
 */
export const feedDate = (
  { nowMs }: Service,
  { lastAtMs }: MailboxView
): { readonly lastModifiedMs?: number } =>
  nowMs() - lastAtMs < datedAfterMs ? {} : { lastModifiedMs: lastAtMs }

/**
 * Reads the last notifications before number `query.before`, or of all. Where most of a log is
 * removed it scans a bounded part of it, so that a page may be short and still have an older one.
 */
export const readLatest = atOneMoment(Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  view: MailboxView,
  query: ListingQuery
): Effect.fn.Return<ReadPage, HandlerFailure> {
  const limit = query.limit ?? pageEntriesDefault
  const end = query.before ?? view.head + 1
  if (end > view.head + 1) return yield* unknownPosition("before")
  // The newest page cannot have more than the mailbox holds.
  const most = end > view.head && view.isEstimate !== true ? view.notifications : limit + 1
  const scannedMax = query.filter === undefined ? latestScannedMax : searchScannedMax
  const spanMax = query.filter === undefined ? pageEntriesMax : pageReadItems
  let found: ReadonlyArray<StoredItem> = []
  let reads = 0
  let low = end
  let scannedChars = 0
  let span = Math.min(limit + 1, pageReadItems)
  while (
    low > 1 && found.length < Math.min(limit + 1, most) && end - low < scannedMax &&
    scannedChars <= searchScannedCharsMax && charsOf(found) <= pageCharsMax
  ) {
    const from = Math.max(1, low - span, end - scannedMax)
    const above = low
    const { isEnd, items } = yield* readBoundedItems(service, mailbox, from, above - from)
    if (!isEnd && (items.at(-1)?.n ?? above) < above - 1) {
      // So many characters that the newest are missing.
      span = (above - from) >> 1
      continue
    }
    scannedChars += charsOf(items)
    reads += 1
    const passed = items.filter((item) =>
      item.n < above && !isRemoval(item.value) && passes(view, query.filter, item)
    )
    found = [...passed, ...found]
    low = from
    span = Math.min(span * 2, spanMax)
  }
  const isWhole = end > view.head && found.length >= most
  const covered = found.slice(found.length - fittingCount(found.toReversed(), limit))
  const entries = yield* withMarks(service, mailbox.name, view, entriesOf(covered))
  const isCut = found.length > covered.length
  const more = isCut || (low > 1 && !isWhole)
  const older = isCut ? covered[0]?.n : low
  const page: ListingPage = {
    view,
    entries,
    time: formatCursor(view.lastAtMs, view.head),
    more,
    isLatest: true,
    ...more && older !== undefined ? { older } : {}
  }
  return { page, isOneRead: reads <= 1 && scannedChars <= answerOfStoreCharsMax }
}))
