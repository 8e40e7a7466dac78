/** Waiting for a mailbox: long polls (RFC 7240 `wait`) and event streams. */
import { Effect } from "effect"
import { formatCursor, isRemoval } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { refreshedCall } from "../../auth/index.ts"
import { eventItemsMax, eventReadCharsMax } from "../../limits.ts"
import { endRefusedStream, eventStreamAnswer, failRefused, type HandlerAnswer, type HandlerFailure,
  type LiveSource, longPoll, type StreamPace } from "../../pipeline/index.ts"
import { type EventStream, eventText } from "../../wire/index.ts"
import { discardedFields, entryOf, entryXml, type ListingPage, type ListingQuery, parseListingSince,
  positionEvent, positionSince, readPage, reportRetrieved, spansOf } from "./listing/index.ts"
import { describeForReader, readBoundedItems, type ReaderCall,
  requireReader } from "./mailbox-access.ts"

/** The mailbox, and the check that its reader may still read it. */
const watchedBy = ({ call, mailbox, service }: ReaderCall): LiveSource => ({
  to: mailbox.to,
  href: mailbox.href,
  mayRead: Effect.flatMap(
    refreshedCall(service, call),
    (refreshed) => requireReader({ call: refreshed, mailbox, service })
  )
})

/**
 * The page at once if it has notifications, else after a deposit; empty when the time is over or
 * the server drains. Every read checks the right to read.
 */
export const pollListing = (
  readerCall: ReaderCall,
  query: ListingQuery,
  waitSeconds: number
): Effect.Effect<ListingPage, HandlerFailure> => {
  const { call, mailbox, reader, service } = readerCall
  let from = query
  const read = Effect.gen(function*(): Effect.fn.Return<ListingPage, HandlerFailure> {
    const view = yield* failRefused(describeForReader(service, mailbox, reader))
    for (;;) {
      const page = yield* readPage(service, mailbox, view, from)
      // The log may have grown by marks of removals, which the next read skips.
      from = { ...query, since: parseListingSince(page.time) }
      if (page.entries.length > 0 || page.isDiscarded === true || !page.more) return page
    }
  })
  const isAnswer = ({ entries, isDiscarded }: ListingPage) =>
    entries.length > 0 || isDiscarded === true
  return longPoll(service, call, watchedBy(readerCall), waitSeconds, read, isAnswer)
}

/**
 * Reads some notifications after number `after`, and sends them until one waits for its reader; the
 * others are read again after it. A reader that stalls must not hold what it cannot receive.
 */
const sendSome = Effect.fnUntraced(function*(
  { call, mailbox, service }: ReaderCall,
  after: number,
  events: EventStream,
  pace: StreamPace
): Effect.fn.Return<{ readonly last: number; readonly isEnd: boolean }, HandlerFailure> {
  const read = readBoundedItems(service, mailbox, after + 1, eventItemsMax, eventReadCharsMax)
  const { isEnd, items } = yield* read
  const sent: Array<{ readonly n: number }> = []
  let last = after
  for (const item of items) {
    if (!events.isFlowing) break
    if (!isRemoval(item.value)) {
      yield* pace.recheck
      const entry = entryOf(item)
      const id = formatCursor(entry.atMs, entry.n)
      const data = entryXml(mailbox, entry)
      if (!events.send(eventText({ event: "notification", id, data }))) {
        return { last, isEnd: true }
      }
      sent.push({ n: item.n })
    }
    last = item.n
  }
  reportRetrieved(service, call, mailbox, spansOf(sent))
  return { last, isEnd: items.length === 0 || (isEnd && last === items.at(-1)?.n) }
})

/**
 * Sends the notifications after number `after`; returns the number of the last one. It reads the
 * log at the pace of the reader, so that it neither skips nor repeats a notification.
 */
const sendAfter = Effect.fnUntraced(function*(
  readerCall: ReaderCall,
  after: number,
  events: EventStream,
  pace: StreamPace
): Effect.fn.Return<number, HandlerFailure> {
  const { mailbox, reader, service } = readerCall
  let last = after
  for (;;) {
    // A slow client may take long for what has arrived before.
    yield* pace.awaitReader
    if (!events.open) return last
    const view = yield* describeForReader(service, mailbox, reader)
    if (isRefusal(view)) {
      endRefusedStream(events, view, mailbox.href)
      return last
    }
    const some = yield* sendSome(readerCall, last, events, pace)
    last = some.last
    if (some.isEnd) return last
  }
})

/**
 * The event stream of the notifications after Last-Event-ID, else after `since`. Its first event
 * reports a position that is unknown or discarded; the stream then begins with what is kept.
 */
export const streamMailbox = Effect.fnUntraced(function*(
  readerCall: ReaderCall,
  query: ListingQuery
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const { call, mailbox, service, view } = readerCall
  const lastId = call.request.headers.get("last-event-id") || undefined
  const since = lastId === undefined ? query.since : parseListingSince(lastId)
  const found = yield* positionSince(service, mailbox, view, since)
  const position = lastId !== undefined && since === undefined
    ? { ...found, state: "unknown" as const }
    : found
  let { after } = position
  let isReported = position.state === "kept"
  const headers = [
    ["Vary", "Accept"] as const,
    mailbox.link,
    ...discardedFields(position.state === "discarded")
  ]
  return eventStreamAnswer(service, call, watchedBy(readerCall), headers, (events, pace) => {
    if (!isReported) events.send(positionEvent(view, position))
    isReported = true
    return Effect.map(sendAfter(readerCall, after, events, pace), (last) => {
      after = last
    })
  })
})
