/** A7: the listing of an outgoing mailbox, newest first; each entry is asked how it stands. */
import { Effect } from "effect"
import type { NotificationStatus } from "../../../actors/notification/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { requireAccount } from "../../auth/index.ts"
import { abandonedEntryMs, askedAtOnceMax, outgoingAskedMax, outgoingEntriesMin,
  outgoingScannedMax } from "../../limits.ts"
import { absoluteUri, type Call, emptyAnswer, type HandlerAnswer, type HandlerFailure, httpError,
  type PageRequest, readPageRequest, readQuery, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { describeAs, mailboxOf, mailboxPath, notificationAt, type OutgoingRef,
  readerHeaders } from "./outgoing-access.ts"
import { entriesAfter, isCursor, mark, type OutgoingEntry } from "./outgoing-entries.ts"
import { type ListedOutgoing, statuses } from "./outgoing-pages.ts"
import { listingView } from "./outgoing-views.ts"

const toOwn = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  status: 303 | 307
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const { name } = yield* requireAccount(service, call)
  return emptyAnswer(status, [
    ["Location", absoluteUri(service, mailboxPath(name))],
    ["Vary", "Authorization"],
    ["Cache-Control", "no-store"]
  ])
})

/** `/outgoing` leads to the caller's own outgoing mailbox. */
export const getOwn = (service: Service) => (call: Call) => toOwn(service, call, 303)

/** The same of A5: what was POSTed is to be POSTed there (RFC 9110 §15.4.8). */
export const postOwn = (service: Service) => (call: Call) => toOwn(service, call, 307)

const filterOf = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<NotificationStatus | undefined, HandlerFailure> {
  const text = (yield* readQuery(call)).get("status")
  const found = statuses.find((status) => status === text)
  if (text !== undefined && found === undefined) {
    return yield* httpError("malformed", `status must be one of ${statuses.join(", ")}`)
  }
  return found
})

/** Removes an entry whose notification is gone, or was never queued: a crash left it. */
export const removeStale = (
  service: Service,
  place: OutgoingRef,
  entry: OutgoingEntry,
  reason: string
): Effect.Effect<void> => {
  const isStale = reason === "Gone" ||
    (reason === "NotFound" && service.nowMs() - entry.atMs > abandonedEntryMs)
  return isStale
    ? Effect.ignore(mark(service, place.account, [entry.cursor], null))
    : Effect.void
}

/** How one stands, by its actor; one that is out of service stands as the index says. */
const look = (
  service: Service,
  place: OutgoingRef,
  entry: OutgoingEntry
): Effect.Effect<ListedOutgoing | undefined, HandlerFailure> =>
  describeAs(service, notificationAt(entry.id), place.caller).pipe(
    Effect.flatMap((view): Effect.Effect<ListedOutgoing | undefined, HandlerFailure> => {
      if (isRefusal(view)) {
        return Effect.as(removeStale(service, place, entry, view.reason), undefined)
      }
      const { createdAtMs, recipients, status } = view
      return Effect.succeed({ id: entry.id, status, atMs: createdAtMs, recipients })
    }),
    Effect.catchTags({ Quarantined: () => hinted(entry), ActorDefect: () => hinted(entry) })
  )

const hinted = ({ atMs, hint, id }: OutgoingEntry): Effect.Effect<ListedOutgoing> =>
  Effect.succeed({
    id,
    status: statuses.find((status) => status === hint) ?? "waiting",
    atMs,
    recipients: []
  })

interface Found {
  readonly listed: ReadonlyArray<ListedOutgoing>
  /** The cursor after which more may be found. */
  readonly next: string | undefined
}

/** A page of those that stand so; it is short when many had to be asked for it. */
const find = Effect.fnUntraced(function*(
  service: Service,
  place: OutgoingRef,
  { after, limit }: PageRequest,
  wanted: NotificationStatus | undefined
): Effect.fn.Return<Found, HandlerFailure> {
  const listed: Array<ListedOutgoing> = []
  let cursor = after
  let asked = 0
  let scanned = 0
  for (;;) {
    const left = limit - listed.length
    const size = wanted === undefined ? left : Math.max(left, outgoingEntriesMin)
    const entries = yield* entriesAfter(service, place.account, cursor, size)
    // Only `sent` is a final hint.
    const passed = (entry: OutgoingEntry): boolean =>
      entry.hint === "sent" && wanted !== undefined && wanted !== "sent"
    const looked = yield* Effect.forEach(
      entries,
      (entry) => passed(entry) ? Effect.succeed(undefined) : look(service, place, entry),
      { concurrency: askedAtOnceMax }
    )
    for (const [at, entry] of entries.entries()) {
      cursor = entry.cursor
      const one = looked[at]
      if (one === undefined || (wanted !== undefined && one.status !== wanted)) continue
      listed.push(one)
      if (listed.length === limit) return { listed, next: cursor }
    }
    if (entries.length < size) return { listed, next: undefined }
    scanned += entries.length
    asked += entries.filter((entry) => !passed(entry)).length
    if (asked >= outgoingAskedMax || scanned >= outgoingScannedMax) return { listed, next: cursor }
  }
})

/** A7. */
export const getListing = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const place = yield* mailboxOf(service, call)
    const page = yield* readPageRequest(call, isCursor)
    const wanted = yield* filterOf(call)
    const { listed, next } = yield* find(service, place, page, wanted)
    const status = wanted === undefined ? "" : `&status=${wanted}`
    const nextHref = next === undefined
      ? undefined
      : `${place.href}?limit=${page.limit}&after=${next}${status}`
    return viewAnswer(listingView(service, place, listed, wanted, nextHref), {
      headers: readerHeaders
    })
  })
