/**
 * Where a listing or a stream of a mailbox begins. A cursor names an item of the log and its time.
 * So a cursor of another mailbox, or from before a restore of the store, is recognized.
 */
import { Effect } from "effect"
import { formatCursor, itemAtMs, type MailboxView, parseSince, type Since,
  startAfter } from "../../../../actors/mailbox/index.ts"
import { StorageUnavailable } from "../../../../runtime/index.ts"
import { element, writeElement } from "../../../formats/xml/index.ts"
import { type HandlerFailure, type HttpError, type Service,
  unknownCursor } from "../../../pipeline/index.ts"
import { eventText } from "../../../wire/index.ts"
import { type BoundedItems, type MailboxRef, readBoundedItems } from "../mailbox-access.ts"

/** A cursor or a time; restores a `+` that the decoding of a form made a space. */
export const parseListingSince = (text: string): Since | undefined =>
  parseSince(text.replace(/ (\d\d:\d\d)$/, "+$1"))

/** A position in the log of a mailbox. */
export interface ListingPosition {
  /** The listing begins after the item of this number. */
  readonly after: number
  /**
   * `discarded`: the items that followed the cursor have been removed, and the listing begins with
   * the first one after them. `unknown`: the mailbox has not given the cursor out.
   */
  readonly state: "kept" | "discarded" | "unknown"
  /** The first items after the position, if the search has read them. */
  readonly following?: BoundedItems
}

/** The log number after which a listing begins. */
export const listingStart = (
  service: Service,
  mailbox: MailboxRef,
  since: Since | undefined,
  head: number
): Effect.Effect<number, HandlerFailure> => {
  if (since === undefined) return Effect.succeed(0)
  if (since._tag === "After") return Effect.succeed(Math.min(since.n, head))
  const readFrom = async (n: number) => {
    const [item] = await Effect.runPromise(service.system.read(mailbox.to, n, 1))
    return item === undefined ? undefined : { n: item.n, atMs: itemAtMs(item.value) }
  }
  return Effect.tryPromise({
    try: () => startAfter(since, head, readFrom),
    catch: (error) => new StorageUnavailable({ detail: String(error) })
  })
}

/** A position that a cursor names: right after item `n`. */
export interface ItemPosition {
  readonly n: number
  /** When the item was received. */
  readonly atMs?: number
  /** The item was not received later than this. The cursor of a cabinet has one time for all. */
  readonly atMostMs?: number
}

/** Whether an item that was received at `itemMs` may be the item of a cursor. */
const isItemOf = ({ atMostMs, atMs }: ItemPosition, itemMs: number): boolean =>
  atMs === undefined ? itemMs <= (atMostMs ?? itemMs) : itemMs === atMs

/**
 * Finds the position of a cursor in the log: its item, if it is still there, has the cursor's time.
 * The cursor of a poller at the head of the log needs no read; another read also returns up to
 * `ahead` items that follow.
 */
export const findPosition = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  view: MailboxView,
  cursor: ItemPosition,
  ahead = 0
): Effect.fn.Return<ListingPosition, HandlerFailure> {
  const { head, lastAtMs, removedUpTo: first = 0 } = view
  const { n } = cursor
  // What was removed has no time to compare; nothing that is kept can be missed.
  if (n < first) return { after: first, state: "discarded" }
  if (n === 0 || (n === head && isItemOf(cursor, lastAtMs))) return { after: n, state: "kept" }
  // An answer may show items that were committed after its view, and so may its cursor.
  const { isEnd, items } = yield* readBoundedItems(service, mailbox, n, 1 + ahead)
  const [item] = items
  const isThere = item?.n === n
  const isKnown = isThere ? isItemOf(cursor, itemAtMs(item.value)) : n <= head
  if (!isKnown) return { after: first, state: "unknown" }
  const following = { items: isThere ? items.slice(1) : items.slice(0, ahead), isEnd }
  return { after: n, state: "kept", ...ahead > 0 ? { following } : {} }
})

/** The position of a cursor or a time; without both, the start of the log. */
export const positionSince = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  view: MailboxView,
  since: Since | undefined,
  ahead = 0
): Effect.fn.Return<ListingPosition, HandlerFailure> {
  if (since?._tag === "After" && since.atMs !== undefined) {
    return yield* findPosition(service, mailbox, view, since, ahead)
  }
  const after = yield* listingStart(service, mailbox, since, view.head)
  return { after: Math.max(after, view.removedUpTo ?? 0), state: "kept" }
})

/** 400 for a cursor that the mailbox has not given out. */
export const unknownPosition = (name: string): HttpError => unknownCursor(name, "mailbox")

/**
 * The event that reports an unusable cursor at the start of a stream. An EventSource does not
 * reconnect after an error status, and cannot read its body. The id is where the stream continues.
 */
export const positionEvent = (view: MailboxView, { after, state }: ListingPosition): string => {
  const time = formatCursor(view.createdAtMs, after)
  const detail = state === "unknown"
    ? "the mailbox has not given out this position; the stream begins with the oldest notification"
    : "what followed this position was removed; the stream begins with the oldest notification"
  const data = writeElement(element("position", { state, time }, element("detail", {}, detail)))
  return eventText({ event: "position", id: time, data })
}
