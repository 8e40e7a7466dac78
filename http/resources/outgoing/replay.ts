/** POST to the outgoing mailbox's …/retry: tries the failed recipients of a span again. */
import { Effect } from "effect"
import { parseSince } from "../../../actors/mailbox/index.ts"
import type { NotificationMessage, NotificationReply } from "../../../actors/notification/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { callerOf } from "../../auth/index.ts"
import { bodyKind, parseFormBody } from "../../formats/index.ts"
import { askedAtOnceMax, outgoingAskedMax, outgoingEntriesMin, outgoingScannedMax,
  queueDelayMaxMs } from "../../limits.ts"
import { askOrRefusal, type Call, type HandlerAnswer, type HandlerFailure, httpError, readBody,
  readQuery, type Service, viewAnswer } from "../../pipeline/index.ts"
import { describeAs, mailboxOf, notificationAt, type OutgoingRef,
  readerHeaders } from "./outgoing-access.ts"
import { entriesAfter, isCursor, mark, type OutgoingEntry } from "./outgoing-entries.ts"
import { removeStale } from "./outgoing-listing.ts"
import { timeOf } from "./outgoing-pages.ts"
import { retriedView } from "./outgoing-views.ts"

interface Span {
  readonly sinceMs: number
  readonly after: string | undefined
}

/** The span of the query, or of the page's form. */
const spanOf = Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Span, HandlerFailure> {
  const query = yield* readQuery(call)
  const bytes = yield* readBody(call)
  let text = query.get("since")
  if (text === undefined && bodyKind(call.request.headers.get("content-type")) === "form") {
    const form = parseFormBody(bytes)
    if (!form.ok) return yield* httpError("malformed", form.fault.detail)
    text = form.value.get("since")
  }
  // A plus that was not encoded has become a space.
  const since = parseSince((text ?? "").trim().replace(/ (\d\d:\d\d)$/, "+$1"))
  if (since?._tag !== "At") {
    return yield* httpError(
      "malformed",
      "since must be the time from which to try again, by RFC 3339"
    )
  }
  const after = query.get("after")
  if (after !== undefined && !isCursor(after)) {
    return yield* httpError("malformed", "after is no cursor of this listing")
  }
  return { sinceMs: since.atMs, after }
})

/** Tries one again, and tells how many of its recipients. */
const retry = Effect.fnUntraced(function*(
  service: Service,
  place: OutgoingRef,
  entry: OutgoingEntry,
  sinceMs: number
): Effect.fn.Return<number, HandlerFailure> {
  const to = notificationAt(entry.id)
  if (entry.atMs < sinceMs) {
    const view = yield* describeAs(service, to, place.caller)
    if (isRefusal(view) || view.createdAtMs < sinceMs) return 0
  }
  const message: NotificationMessage = { _tag: "Retry", caller: callerOf(place.caller) }
  const reply = yield* askOrRefusal<NotificationReply>(service, to, message)
  if (isRefusal(reply)) {
    yield* removeStale(service, place, entry, reply.reason)
    return 0
  }
  return reply._tag === "Retried" ? reply.recipients : 0
})

interface Retried {
  readonly notifications: number
  readonly recipients: number
  readonly next: string | undefined
}

/** Newest first, so many of the span as one request may ask. */
const replay = Effect.fnUntraced(function*(
  service: Service,
  place: OutgoingRef,
  { after, sinceMs }: Span
): Effect.fn.Return<Retried, HandlerFailure> {
  let cursor = after
  let notifications = 0
  let recipients = 0
  let asked = 0
  let scanned = 0
  for (;;) {
    const entries = yield* entriesAfter(service, place.account, cursor, outgoingEntriesMin)
    // An entry is a little older than its notification, whose time is what the sender knows.
    const within = entries.filter(({ atMs }) => atMs >= sinceMs - queueDelayMaxMs)
    const unsent = within.filter(({ hint }) => hint !== "sent")
    const failed = unsent.filter(({ hint }) => hint === "failed").map((entry) => entry.cursor)
    // Before they are tried: a hint may say waiting of one that has ended, and not the reverse.
    yield* mark(service, place.account, failed, "waiting")
    const counts = yield* Effect.forEach(
      unsent,
      (entry) => retry(service, place, entry, sinceMs),
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

/** 202 with how many are tried again; where to go on when there may be more. */
export const postReplay = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const place = yield* mailboxOf(service, call)
    const span = yield* spanOf(call)
    const { next, ...counts } = yield* replay(service, place, span)
    const nextPath = next === undefined
      ? undefined
      : `${place.path}/retry?since=${timeOf(span.sinceMs)}&after=${next}`
    return viewAnswer(retriedView(service, place, counts, nextPath), {
      status: 202,
      headers: readerHeaders
    })
  })
