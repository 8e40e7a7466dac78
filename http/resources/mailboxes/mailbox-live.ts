/** Waiting for a mailbox: long polls (RFC 7240 `wait`) and event streams. */
import { Effect } from "effect"
import { formatCursor, isRemoval, type MailboxView } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { refreshedCall } from "../../auth/index.ts"
import { eventItemsMax, eventReadCharsMax } from "../../limits.ts"
import { endRefusedStream, eventStreamAnswer, failRefused, type HandlerAnswer, type HandlerFailure,
  type LiveSource, longPoll, type StreamPace } from "../../pipeline/index.ts"
import { type EventStream, eventText } from "../../wire/index.ts"
import { discardedFields, entryOf, entryXml, type ListingPage, type ListingQuery, parseListingSince,
  positionEvent, positionSince, readPage, reportRetrieved, spansOf } from "./listing/index.ts"
import { describeForReader, readBoundedItems, type ReaderCall, requireReader,
  stateBesideLog } from "./mailbox-access.ts"

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
 * Sends an event `changed` when the state beside the log is another than at the last call. It has
 * no id, so that a reader resumes after the last notification.
 */
const changeSender = ({ mailbox, view }: ReaderCall, { areChangesWanted }: ListingQuery) => {
  if (areChangesWanted !== true) return () => {}
  let sent = stateBesideLog(view)
  return (events: EventStream, now: MailboxView): void => {
    const state = stateBesideLog(now)
    if (state !== sent) events.send(eventText({ event: "changed", data: mailbox.href }))
    sent = state
  }
}

/**
 * Sends the notifications after number `after`; returns the number of the last one. It reads the
 * log at the pace of the reader, so that it neither skips nor repeats a notification.
 */
const sendAfter = Effect.fnUntraced(function*(
  readerCall: ReaderCall,
  after: number,
  events: EventStream,
  pace: StreamPace,
  sendChange: ReturnType<typeof changeSender>
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
    sendChange(events, view)
    const some = yield* sendSome(readerCall, last, events, pace)
    last = some.last
    if (some.isEnd) return last
  }
})

/**
 * The event stream of the notifications after Last-Event-ID, else after `since`. Its first event
 * reports a position that is unknown or discarded; the stream then begins with what is kept.
 * Each hint of a change wakes the stream anyway, so that `changed` costs no read of its own.
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
  const sendChange = changeSender(readerCall, query)
  const headers = [
    ["Vary", "Accept"] as const,
    mailbox.link,
    ...discardedFields(position.state === "discarded")
  ]
  return eventStreamAnswer(service, call, watchedBy(readerCall), headers, (events, pace) => {
    if (!isReported) events.send(positionEvent(view, position))
    isReported = true
    return Effect.map(sendAfter(readerCall, after, events, pace, sendChange), (last) => {
      after = last
    })
  })
})
