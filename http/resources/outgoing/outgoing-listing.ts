/** The entries of an outgoing mailbox: their listing (A7), and the retry of a span of them. */
import { Effect } from "effect"
import { cursorOf, cursorTimeMaxMs, replayedRecipientsMax,
  replaysFormat } from "../../../actors/index.ts"
import type { NotificationReply, NotificationStatus } from "../../../actors/notification/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { auditedAsAdmin } from "../../audit/index.ts"
import { callerOf, requireAccount } from "../../auth/index.ts"
import { askedAtOnceMax, outgoingAskedMax, outgoingEntriesMin, outgoingScannedMax,
  queueDelayMaxMs } from "../../limits.ts"
import { type IndexEntry, isCursor } from "../../newest-first-index.ts"
import { absoluteUri, askOrRefusal, type Call, defineHandler, emptyAnswer, type HandlerFailure,
  httpError, inPlace, noStore, type PageRequest, readerHeaders, readInput, readPageRequest,
  readQuery, type RequestInput, requireFormat, type Service, unprocessable,
  viewAnswer } from "../../pipeline/index.ts"
import { parseListingSince } from "../mailboxes/index.ts"
import { existingOutgoingRef, mailboxPath, namedIn, notificationAddress, type OutgoingRef,
  retryMessage, summarizeAs, tooManyReplays } from "./outgoing-access.ts"
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
  /** Who gets it again, whatever they have got; undefined for those that have failed. */
  readonly to: ReadonlyArray<string> | undefined
}

/** A time of a query or form; undefined for another text. */
const timeIn = (text: string): number | undefined => {
  const time = parseListingSince(text.trim())
  return time?._tag === "At" ? time.atMs : undefined
}

/** The recipients that a replay of a span names; undefined for a retry of the failed ones. */
const replayedIn = Effect.fnUntraced(function*(
  service: Service,
  input: RequestInput
): Effect.fn.Return<ReadonlyArray<string> | undefined, HandlerFailure> {
  const to = namedIn(service, input)
  if (to.length > replayedRecipientsMax) {
    return yield* unprocessable(
      `to names ${to.length} recipients: name ${replayedRecipientsMax} at most in one request`
    )
  }
  if (to.length > 0) return to
  // An empty list must not be taken for all that have failed. Browsers send empty fields.
  return input._tag === "Document" && input.bytes.length > 0
    ? yield* unprocessable(
      "to names no recipient: name one, or send no body to retry all that have failed"
    )
    : undefined
})

/** The span of the query, and of the page's form for what the query does not have. */
const retrySpanOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<RetrySpan, HandlerFailure> {
  const query = yield* readQuery(call)
  const input = yield* readInput(call, "retry", { form: true, mayBeEmpty: true })
  const form = input._tag === "Form" ? input.fields : undefined
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
  const to = yield* replayedIn(service, input)
  if (to !== undefined) yield* requireFormat(service, replaysFormat)
  return { sinceMs, untilMs, after: after ?? cursorAt(untilMs), to }
})

/** The position in the index just before what was entered until then; undefined for the newest. */
const cursorAt = (untilMs: number): string | undefined =>
  Number.isFinite(untilMs) && untilMs >= 0
    ? cursorOf(Math.min(untilMs, cursorTimeMaxMs), "-")
    : undefined

/** What has come of one notification. */
interface RetriedEntry {
  /** How many of its recipients are tried. */
  readonly recipients: number
  /** It is not sent again to a recipient that was named. */
  readonly isRefused?: boolean
  /** So it is, as there were too many replays, until then. */
  readonly untilMs?: number
}

const untouched: RetriedEntry = { recipients: 0 }

/** Retries one notification. A repetition does not retry those that the first attempt has. */
const retryEntry = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  mailbox: OutgoingRef,
  entry: IndexEntry,
  { sinceMs, to: named, untilMs }: RetrySpan
): Effect.fn.Return<RetriedEntry, HandlerFailure> {
  const to = notificationAddress(entry.id)
  if (entry.atMs < sinceMs || entry.atMs >= untilMs - queueDelayMaxMs) {
    const view = yield* summarizeAs(service, to, mailbox.caller)
    if (isRefusal(view) || view.createdAtMs < sinceMs || view.createdAtMs > untilMs) {
      return untouched
    }
  }
  const message = retryMessage(call, mailbox, named === undefined ? {} : { to: named })
  const reply = yield* askOrRefusal<NotificationReply>(service, to, message)
  if (isRefusal(reply)) {
    yield* removeStale(service, mailbox.account, entry, reply.reason)
    // It was replaced or withdrawn since a recipient got it.
    return reply.reason === "Ended" ? { recipients: 0, isRefused: true } : untouched
  }
  if (reply._tag === "TooManyReplays") {
    return { recipients: 0, isRefused: true, untilMs: reply.untilMs }
  }
  return reply._tag === "Retried" ? { recipients: reply.recipients } : untouched
})

/** The outcome of a span, or of the part of it that one request goes through. */
interface RetriedSpan {
  readonly notifications: number
  readonly recipients: number
  /** Notifications that are not sent again to a recipient that was named. */
  readonly refused: number
  /** The cursor of the rest of the span. */
  readonly next: string | undefined
}

/** The outcome of these notifications; 429 if none is sent again as there were too many replays. */
const outcomeOf = Effect.fnUntraced(function*(
  entries: ReadonlyArray<RetriedEntry>,
  next: string | undefined
): Effect.fn.Return<RetriedSpan, HandlerFailure> {
  const recipients = entries.reduce((sum, one) => sum + one.recipients, 0)
  const untilMs = entries.flatMap((one) => one.untilMs ?? [])
  if (recipients === 0 && untilMs.length > 0) yield* tooManyReplays(Math.min(...untilMs))
  return {
    notifications: entries.filter((one) => one.recipients > 0).length,
    recipients,
    refused: entries.filter(({ isRefused }) => isRefused).length,
    next
  }
})

/** Retries the span, newest first, up to the bounds of one request. */
const retrySpan = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  mailbox: OutgoingRef,
  span: RetrySpan
): Effect.fn.Return<RetriedSpan, HandlerFailure> {
  const { sinceMs, to } = span
  const retried: Array<RetriedEntry> = []
  let cursor = span.after
  let asked = 0
  let scanned = 0
  for (;;) {
    const entries = yield* readOutgoing(service, mailbox.account, cursor, outgoingEntriesMin)
    // An entry is a little older than its notification, whose time the sender knows.
    const within = entries.filter(({ atMs }) => atMs >= sinceMs - queueDelayMaxMs)
    const chosen = to === undefined ? within.filter(({ value }) => value !== "sent") : within
    const failed = chosen.filter(({ value }) => value === "failed").map((entry) => entry.cursor)
    // Before the retry: `waiting` may be the hint of an ended notification, but not the reverse.
    if (to === undefined) yield* markWaiting(service, mailbox.account, failed)
    retried.push(
      ...yield* Effect.forEach(
        chosen,
        (entry) => retryEntry(service, call, mailbox, entry, span),
        { concurrency: askedAtOnceMax }
      )
    )
    const isEnd = within.length < entries.length || entries.length < outgoingEntriesMin
    if (isEnd) return yield* outcomeOf(retried, undefined)
    cursor = entries.at(-1)?.cursor
    asked += chosen.length
    scanned += entries.length
    if (asked >= outgoingAskedMax || scanned >= outgoingScannedMax) {
      return yield* outcomeOf(retried, cursor)
    }
  }
})

/** POST to …/retry of the mailbox: 202 with the counts, and a link to the rest of the span. */
export const postRetrySpan = defineHandler(function*(service, call) {
  const mailbox = yield* existingOutgoingRef(service, call)
  const span = yield* retrySpanOf(service, call)
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
  return viewAnswer(retriedView(service, mailbox, counts, { next: nextPath, to: span.to }), {
    status: 202,
    headers: readerHeaders
  })
})
