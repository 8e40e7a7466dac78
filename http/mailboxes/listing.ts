/** The listing of a mailbox (A11): reading a page of its log, and the view of it. */
import { Effect } from "effect"
import { retrievedAtOnceMax } from "../../actors/limits.ts"
import { formatCursor, parseSince, type Since, startAfter } from "../../actors/mailbox/cursor.ts"
import { decodeItem, isRemoval, itemAtMs, notificationId } from "../../actors/mailbox/item.ts"
import type { MailboxMessage, MailboxView } from "../../actors/mailbox/protocol.ts"
import { StorageUnavailable } from "../../runtime/index.ts"
import { type Call, queryOf } from "../call.ts"
import { fail, type HandlerFailure } from "../failures.ts"
import { pageEntriesDefault, pageEntriesMax } from "../limits.ts"
import type { ResourceView } from "../representations.ts"
import type { Service } from "../service.ts"
import { type Element, element, escapeAttribute, parseFragment } from "../xml.ts"
import { writeElement, xmlDeclaration } from "../xml.ts"
import { inboxDocument } from "./activity.ts"
import { withCopies } from "./copies.ts"
import { feedOf } from "./feed.ts"
import { linksOf, nextOf, selfOf } from "./links.ts"
import { readerForms, readerPage } from "./pages.ts"
import type { MailboxRef } from "./reader.ts"
import { settingsElements } from "./settings.ts"
import { summaryOf } from "./summary.ts"

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
  const fields = yield* queryOf(call)
  const sinceText = fields.get("since")
  const since = sinceText === undefined ? undefined : sinceOf(sinceText)
  if (sinceText !== undefined && since === undefined) {
    return yield* fail("malformed", "since must be the time of an earlier answer, or RFC 3339's")
  }
  const beforeText = fields.get("before")
  if (beforeText !== undefined && !/^[1-9]\d{0,11}$/.test(beforeText)) {
    return yield* fail("malformed", "before must come from a link of a page")
  }
  const before = beforeText === undefined ? undefined : Number(beforeText)
  const limitText = fields.get("limit")
  const limit = limitText === undefined ? undefined : Number(limitText)
  if (
    limit !== undefined && !(/^\d{1,4}$/.test(limitText ?? "") && limit >= 1
      && limit <= pageEntriesMax)
  ) {
    return yield* fail("malformed", `limit must be a whole number from 1 to ${pageEntriesMax}`)
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

/** RFC 3339 of a time; neighbours in a log are mostly of one second, which is written once. */
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
const openingOf = (place: MailboxRef): string =>
  `<notification href="${escapeAttribute(place.here)}/notifications/`

const afterOpening = ({ fragment, id, received }: MailboxEntry): string =>
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

/** The view of a page: its XML is a join of stored fragments, all else is built when wanted. */
export const listingView = (
  place: MailboxRef,
  page: ListingPage,
  query: ListingQuery
): ResourceView => {
  const { entries, mailbox, time } = page
  const { isOwner, settings } = mailbox
  const title = settings.title ?? place.name
  const own = isOwner ? settingsElements(settings) : []
  const next = nextOf(place, page, query)
  let xml = `${xmlDeclaration}<mailbox href="${escapeAttribute(place.href)}" ` +
    `title="${escapeAttribute(settings.title ?? "")}" time="${time}">`
  for (const setting of own) xml += writeElement(setting)
  const opening = openingOf(place)
  for (const entry of entries) xml += opening + afterOpening(entry)
  return {
    title,
    xml: `${xml}</mailbox>`,
    tree: () =>
      element(
        "mailbox",
        { href: place.href, title: settings.title ?? "", time },
        ...own,
        ...entries.map((entry) => entryElement(place, entry))
      ),
    links: linksOf(place, page, next),
    body: () => readerPage(place, page, entries.map((entry) => summaryOf(place, entry))),
    forms: () => readerForms(place, mailbox),
    script: page.more || query.before !== undefined ? undefined : "/mailbox.js",
    feed: () => feedOf(place, page, title, { self: selfOf(place, query), next }),
    linkedData: () => inboxDocument(place, page)
  }
}

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
    service.system.askWith(place.to, message, () => {})
  }
}
