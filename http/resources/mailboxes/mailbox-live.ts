/** Waiting for a mailbox: long polls (RFC 7240 `wait`) and live event streams. */
import { Effect } from "effect"
import { formatCursor, isRemoval, type MailboxReader } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { eventItemsMax, watchRecheckMs } from "../../limits.ts"
import { awaitWritable, type Call, type HandlerAnswer, type HandlerFailure, refusalError,
  type Service, withChangeWaiter } from "../../pipeline/index.ts"
import { type EventStream, eventText } from "../../wire/index.ts"
import { listAs, type MailboxRef } from "./mailbox-access.ts"
import { entryOf, entryXml, type ListingPage, type ListingQuery, readPage, sinceOf, spansOf,
  tellRetrieved } from "./mailbox-listing.ts"

/**
 * A page as soon as there is something on it: at once, after a deposit, or empty when the time
 * is over or the server drains. Rights are looked at anew each time.
 */
export const longPoll = (
  service: Service,
  call: Call,
  place: MailboxRef,
  reader: MailboxReader,
  query: ListingQuery,
  waitSeconds: number
): Effect.Effect<ListingPage, HandlerFailure> =>
  withChangeWaiter(
    service,
    place.to,
    call.exchange,
    Effect.fnUntraced(function*(waiter): Effect.fn.Return<ListingPage, HandlerFailure> {
      const endMs = performance.now() + waitSeconds * 1000
      let from = query
      for (;;) {
        const reply = yield* listAs(service, place, reader)
        if (isRefusal(reply)) return yield* refusalError(reply)
        const page = yield* readPage(service, place, reply.view, from)
        const leftMs = endMs - performance.now()
        if (page.entries.length > 0 || leftMs <= 0 || waiter.over) return page
        // The log may have grown by what is no notification: that is behind it now.
        from = { ...query, since: sinceOf(page.time) }
        if (page.more) continue
        yield* waiter.next(Math.min(leftMs, watchRecheckMs))
      }
    })
  )

/**
 * One live stream: it reads the log on from its cursor after each hint, so that it neither skips
 * nor repeats, and no faster than its reader takes it.
 */
class Live {
  private readonly service: Service
  private readonly place: MailboxRef
  private readonly reader: MailboxReader
  private readonly events: EventStream
  private after: number
  private busy = false
  private again = false

  constructor(
    service: Service,
    place: MailboxRef,
    reader: MailboxReader,
    after: number,
    events: EventStream
  ) {
    this.service = service
    this.place = place
    this.reader = reader
    this.after = after
    this.events = events
  }

  start(): void {
    const unwatch = this.service.system.watch(this.place.to, () => this.pump())
    const timer = setInterval(() => this.pump(), watchRecheckMs)
    this.events.onClose(() => {
      unwatch()
      clearInterval(timer)
    })
    this.pump()
  }

  private pump(): void {
    if (this.busy) {
      this.again = true
      return
    }
    this.busy = true
    this.again = false
    Effect.runFork(this.round()).addObserver((exit) => {
      this.busy = false
      // Its reader comes back with its cursor, and is told then what is wrong.
      if (exit._tag === "Failure") this.events.close()
      else if (this.again && this.events.open) this.pump()
    })
  }

  private round(): Effect.Effect<void, HandlerFailure> {
    const { events, place, service } = this
    return Effect.gen({ self: this }, function*() {
      while (events.open) {
        const reply = yield* listAs(service, place, this.reader)
        if (isRefusal(reply)) {
          if (reply.reason === "Gone") events.send(eventText({ event: "gone", data: place.href }))
          return events.close()
        }
        const items = yield* service.system.read(place.to, this.after + 1, eventItemsMax)
        for (const item of items) {
          if (isRemoval(item.value)) {
            this.after = item.n
            continue
          }
          const entry = entryOf(item)
          const id = formatCursor(entry.atMs, entry.n)
          const data = entryXml(place, entry)
          if (!events.send(eventText({ event: "notification", id, data }))) return
          this.after = entry.n
          if (!events.flowing) yield* awaitWritable(events)
        }
        if (!events.open) return
        const shown = items.filter(({ value }) => !isRemoval(value))
        tellRetrieved(service, place, spansOf(shown))
        if (items.length < eventItemsMax) return
      }
    })
  }
}

/** The answer that is a live stream of what came after item number `after`. */
export const liveAnswer = (
  service: Service,
  place: MailboxRef,
  reader: MailboxReader,
  after: number
): HandlerAnswer => ({
  _tag: "Events",
  headers: [["Vary", "Accept"], [...place.link]],
  start: (events) => new Live(service, place, reader, after, events).start()
})
