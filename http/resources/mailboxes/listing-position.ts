/**
 * Where a listing or a stream of a mailbox begins. A cursor names an item of the log and its time.
 * So a cursor of another mailbox, or from before a restore of the store, is recognized.
 */
import { Effect } from "effect"
import { formatCursor, itemAtMs, type MailboxView, parseSince, type Since,
  startAfter } from "../../../actors/mailbox/index.ts"
import { StorageUnavailable } from "../../../runtime/index.ts"
import { element, writeElement } from "../../formats/xml/index.ts"
import { type HandlerFailure, type HttpError, type Service,
  unknownCursor } from "../../pipeline/index.ts"
import { eventText } from "../../wire/index.ts"
import type { MailboxRef } from "./mailbox-access.ts"

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

/**
 * Whether the log has the item of a cursor with the cursor's time. The time of a removed item is
 * not known any more. The cursor of a poller at the head of the log needs no read.
 */
const isKnown = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  { head, lastAtMs }: MailboxView,
  { atMostMs, atMs, n }: ItemPosition
): Effect.fn.Return<boolean, HandlerFailure> {
  const isOf = (itemMs: number): boolean =>
    atMs === undefined
      ? itemMs <= (atMostMs ?? itemMs)
      : itemMs === atMs
  if (n === 0 || (n === head && isOf(lastAtMs))) return true
  // An answer may show items that were committed after its view, and so may its cursor.
  const [item] = yield* service.system.read(mailbox.to, n, 1)
  return item?.n === n ? isOf(itemAtMs(item.value)) : n <= head
})

/** Finds the position of a cursor in the log. */
export const findPosition = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  view: MailboxView,
  cursor: ItemPosition
): Effect.fn.Return<ListingPosition, HandlerFailure> {
  const first = view.removedUpTo ?? 0
  // What was removed has no time to compare; nothing that is kept can be missed.
  if (cursor.n < first) return { after: first, state: "discarded" }
  const isOwn = yield* isKnown(service, mailbox, view, cursor)
  return isOwn ? { after: cursor.n, state: "kept" } : { after: first, state: "unknown" }
})

/** The position of a cursor or a time; without both, the start of the log. */
export const positionSince = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  view: MailboxView,
  since: Since | undefined
): Effect.fn.Return<ListingPosition, HandlerFailure> {
  if (since?._tag === "After" && since.atMs !== undefined) {
    return yield* findPosition(service, mailbox, view, since)
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
