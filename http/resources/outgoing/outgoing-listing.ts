/** The entries of an outgoing mailbox: their listing (A7), and the retry of a span of them. */
import { Effect } from "effect"
import { cursorOf, cursorTimeMaxMs } from "../../../actors/index.ts"
import type { NotificationReply, NotificationStatus } from "../../../actors/notification/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { auditedAsAdmin } from "../../audit/index.ts"
import { callerOf, requireAccount } from "../../auth/index.ts"
import { bodyKind, type FormFields, parseFormBody } from "../../formats/index.ts"
import { askedAtOnceMax, outgoingAskedMax, outgoingEntriesMin, outgoingScannedMax,
  queueDelayMaxMs } from "../../limits.ts"
import { type IndexEntry, isCursor } from "../../newest-first-index.ts"
import { absoluteUri, askOrRefusal, type Call, defineHandler, emptyAnswer, type HandlerFailure,
  httpError, inPlace, noStore, type PageRequest, readBody, readerHeaders, readPageRequest,
  readQuery, type Service, viewAnswer } from "../../pipeline/index.ts"
import { parseListingSince } from "../mailboxes/index.ts"
import { existingOutgoingRef, mailboxPath, notificationAddress, type OutgoingRef, retryMessage,
  summarizeAs } from "./outgoing-access.ts"
import { markWaiting, readOutgoing, removeStale } from "./outgoing-entries.ts"
import { type ListedOutgoing, listingView, notificationStatuses,
  retriedView } from "./outgoing-views.ts"
import { pausesIfKnown } from "./pauses.ts"

/**
 * Redirects `/outgoing` to the caller's own outgoing mailbox, with the query; after 307 the client
 * repeats its POST there (RFC 9110 §15.4.8).
 */
export const redirectToOwn = (status: 303 | 307) =>
  defineHandler(function*(service, call) {
    const { name } = yield* requireAccount(service, call)
    const { query } = call.request
    const href = absoluteUri(service, mailboxPath(name))
    return emptyAnswer(status, [
      ["Location", query === "" ? href : `${href}?${query}`],
      ["Vary", "Authorization"],
      ...noStore
    ])
  })

/* The listing. */

const statusFilterOf = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<NotificationStatus | undefined, HandlerFailure> {
  const text = (yield* readQuery(call)).get("status")
  const filter = notificationStatuses.find((status) => status === text)
  if (text !== undefined && filter === undefined) {
    return yield* httpError(
      "malformed",
      `status must be one of ${notificationStatuses.join(", ")}`
    )
  }
  return filter
})

/** A notification by the hint of its entry, for one whose actor cannot be asked. */
const listedByHint = ({ atMs, id, value }: IndexEntry): Effect.Effect<ListedOutgoing> =>
  Effect.succeed({
    id,
    status: notificationStatuses.find((status) => status === value) ?? "waiting",
    atMs,
    firstTo: undefined,
    about: undefined,
    count: 0
  })

/** The notification of an entry, undefined for a stale entry. */
const describeEntry = (
  service: Service,
  { account, caller }: OutgoingRef,
  entry: IndexEntry
): Effect.Effect<ListedOutgoing | undefined, HandlerFailure> =>
  summarizeAs(service, notificationAddress(entry.id), caller).pipe(
    Effect.flatMap((view): Effect.Effect<ListedOutgoing | undefined, HandlerFailure> => {
      if (isRefusal(view)) {
        return Effect.as(removeStale(service, account, entry, view.reason), undefined)
      }
      const { about, count, createdAtMs, recipients: [first], status } = view
      return Effect.succeed({
        id: entry.id,
        status,
        atMs: createdAtMs,
        firstTo: first?.to,
        about,
        count
      })
    }),
    Effect.catchTags({
      Quarantined: () => listedByHint(entry),
      ActorDefect: () => listedByHint(entry)
    })
  )

interface OutgoingPage {
  readonly listed: ReadonlyArray<ListedOutgoing>
  /** The cursor of the next page. */
  readonly next: string | undefined
}

/** A page of the notifications with a status; it is short after asking many actors for it. */
const readListing = Effect.fnUntraced(function*(
  service: Service,
  mailbox: OutgoingRef,
  { after, limit }: PageRequest,
  filter: NotificationStatus | undefined
): Effect.fn.Return<OutgoingPage, HandlerFailure> {
  const listed: Array<ListedOutgoing> = []
  let cursor = after
  let asked = 0
  let scanned = 0
  // Only `sent` is a final hint.
  const isExcluded = ({ value }: IndexEntry): boolean =>
    value === "sent" && filter !== undefined && filter !== "sent"
  for (;;) {
    const left = limit - listed.length
    const size = filter === undefined ? left : Math.max(left, outgoingEntriesMin)
    const entries = yield* readOutgoing(service, mailbox.account, cursor, size)
    const described = yield* Effect.forEach(
      entries,
      (entry) =>
        isExcluded(entry) ? Effect.succeed(undefined) : describeEntry(service, mailbox, entry),
      { concurrency: askedAtOnceMax }
    )
    for (const [at, entry] of entries.entries()) {
      cursor = entry.cursor
      const row = described[at]
      if (row === undefined || (filter !== undefined && row.status !== filter)) continue
      listed.push(row)
      if (listed.length === limit) return { listed, next: cursor }
    }
    if (entries.length < size) return { listed, next: undefined }
    scanned += entries.length
    asked += entries.filter((entry) => !isExcluded(entry)).length
    if (asked >= outgoingAskedMax || scanned >= outgoingScannedMax) return { listed, next: cursor }
  }
})

/** A7. */
export const getOutgoingListing = defineHandler(function*(service, call) {
  const mailbox = yield* existingOutgoingRef(service, call)
  const page = yield* readPageRequest(call, isCursor)
  const filter = yield* statusFilterOf(call)
  const reading = readListing(service, mailbox, page, filter)
  const { listed, next } = yield* inPlace(service.actorListings, call.request, reading)
  const pauses = yield* pausesIfKnown(service, mailbox)
  const status = filter === undefined ? "" : `&status=${filter}`
  const nextHref = next === undefined
    ? undefined
    : `${mailbox.href}?limit=${page.limit}&after=${next}${status}`
  const shown = { listed, filter, next: nextHref }
  return viewAnswer(listingView(service, mailbox, pauses, shown), { headers: readerHeaders })
})

/* Retrying a span. */

interface RetrySpan {
  readonly sinceMs: number
  /** Infinity without an end. */
  readonly untilMs: number
  readonly after: string | undefined
}

/** A time of a query or form; undefined for another text. */
const timeIn = (text: string): number | undefined => {
  const time = parseListingSince(text.trim())
  return time?._tag === "At" ? time.atMs : undefined
}

/** The fields of the page's form; none without a body. 415 for another body. */
const spanForm = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<FormFields | undefined, HandlerFailure> {
  const bytes = yield* readBody(call)
  if (bytes.length === 0) return undefined
  if (bodyKind(call.request.headers.get("content-type")) !== "form") {
    return yield* httpError(
      "unsupported-media-type",
      "a span is named by the query or a form: send no other body"
    )
  }
  const form = parseFormBody(bytes)
  return form.ok ? form.value : yield* httpError("malformed", form.fault)
})

/** The span of the query, and of the page's form for what the query does not have. */
const retrySpanOf = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<RetrySpan, HandlerFailure> {
  const query = yield* readQuery(call)
  const form = yield* spanForm(call)
  const sinceMs = timeIn(query.get("since") ?? form?.get("since") ?? "")
  if (sinceMs === undefined) {
    return yield* httpError("malformed", "since must be a time (RFC 3339): where to begin")
  }
  const until = query.get("until") ?? form?.get("until")?.trim() ?? ""
  // Browsers send empty fields of a form.
  const isOpen = until === "" && !query.has("until")
  const untilMs = isOpen ? Number.POSITIVE_INFINITY : timeIn(until)
  if (untilMs === undefined) {
    return yield* httpError("malformed", "until must be a time (RFC 3339): where to end")
  }
  if (untilMs < sinceMs) {
    return yield* httpError("malformed", "until is before since: name the earlier time as since")
  }
  const { after } = yield* readPageRequest(call, isCursor)
  return { sinceMs, untilMs, after: after ?? cursorAt(untilMs) }
})

/** The position in the index just before what was entered until then; undefined for the newest. */
const cursorAt = (untilMs: number): string | undefined =>
  Number.isFinite(untilMs) && untilMs >= 0
    ? cursorOf(Math.min(untilMs, cursorTimeMaxMs), "-")
    : undefined

/**
 * Retries one notification; returns how many of its recipients. A repetition does not retry those
 * that the first attempt has retried.
 */
const retryEntry = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  mailbox: OutgoingRef,
  entry: IndexEntry,
  { sinceMs, untilMs }: RetrySpan
): Effect.fn.Return<number, HandlerFailure> {
  const to = notificationAddress(entry.id)
  if (entry.atMs < sinceMs || entry.atMs >= untilMs - queueDelayMaxMs) {
    const view = yield* summarizeAs(service, to, mailbox.caller)
    if (isRefusal(view) || view.createdAtMs < sinceMs || view.createdAtMs > untilMs) return 0
  }
  const message = retryMessage(call, mailbox)
  const reply = yield* askOrRefusal<NotificationReply>(service, to, message)
  if (isRefusal(reply)) {
    yield* removeStale(service, mailbox.account, entry, reply.reason)
    return 0
  }
  return reply._tag === "Retried" ? reply.recipients : 0
})

interface RetriedSpan {
  readonly notifications: number
  readonly recipients: number
  /** The cursor of the rest of the span. */
  readonly next: string | undefined
}

/** Retries the span, newest first, up to the bounds of one request. */
const retrySpan = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  mailbox: OutgoingRef,
  span: RetrySpan
): Effect.fn.Return<RetriedSpan, HandlerFailure> {
  const { sinceMs } = span
  let cursor = span.after
  let notifications = 0
  let recipients = 0
  let asked = 0
  let scanned = 0
  for (;;) {
    const entries = yield* readOutgoing(service, mailbox.account, cursor, outgoingEntriesMin)
    // An entry is a little older than its notification, whose time the sender knows.
    const within = entries.filter(({ atMs }) => atMs >= sinceMs - queueDelayMaxMs)
    const unsent = within.filter(({ value }) => value !== "sent")
    const failed = unsent.filter(({ value }) => value === "failed").map((entry) => entry.cursor)
    // Before the retry: `waiting` may be the hint of an ended notification, but not the reverse.
    yield* markWaiting(service, mailbox.account, failed)
    const counts = yield* Effect.forEach(
      unsent,
      (entry) => retryEntry(service, call, mailbox, entry, span),
      { concurrency: askedAtOnceMax }
    )
    notifications += counts.filter((count) => count > 0).length
    recipients += counts.reduce((sum, count) => sum + count, 0)
    const isEnd = within.length < entries.length || entries.length < outgoingEntriesMin
    if (isEnd) return { notifications, recipients, next: undefined }
    cursor = entries.at(-1)?.cursor
    asked += unsent.length
    scanned += entries.length
    if (asked >= outgoingAskedMax || scanned >= outgoingScannedMax) {
      return { notifications, recipients, next: cursor }
    }
  }
})

/** POST to …/retry of the mailbox: 202 with the counts, and a link to the rest of the span. */
export const postRetrySpan = defineHandler(function*(service, call) {
  const mailbox = yield* existingOutgoingRef(service, call)
  const span = yield* retrySpanOf(call)
  const operation = {
    caller: callerOf(mailbox.caller),
    action: "outgoing.retry",
    target: mailbox.path
  } as const
  const retrying = retrySpan(service, call, mailbox, span)
  const { next, ...counts } = yield* auditedAsAdmin(
    service,
    call,
    operation,
    mailbox.account,
    retrying
  )
  const since = new Date(span.sinceMs).toISOString()
  const until = Number.isFinite(span.untilMs)
    ? `&until=${new Date(span.untilMs).toISOString()}`
    : ""
  const nextPath = next === undefined
    ? undefined
    : `${mailbox.path}/retry?since=${since}${until}&after=${next}`
  return viewAnswer(retriedView(service, mailbox, counts, nextPath), {
    status: 202,
    headers: readerHeaders
  })
})
