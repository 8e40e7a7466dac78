/** Waiting for a mailbox: long polls (RFC 7240 `wait`) and live event streams. */
import { Effect } from "effect"
import { formatCursor, isRemoval, type MailboxReader } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { eventItemsMax, watchRecheckMs } from "../../limits.ts"
import { awaitWritable, type Call, type HandlerAnswer, type HandlerFailure, refusalError,
  type Service, withChangeWaiter } from "../../pipeline/index.ts"
import { type EventStream, eventText } from "../../wire/index.ts"
import { listAs, type MailboxRef } from "./mailbox-access.ts"
import { entryOf, entryXml, type ListingPage, type ListingQuery, parseListingSince, readPage,
  reportRetrieved, spansOf } from "./mailbox-listing.ts"

/**
 * Long poll: the page at once if it has notifications, else after a deposit; empty when the time is
 * over or the server drains. Every read checks the right to read.
 */
export const longPoll = (
  service: Service,
  call: Call,
  mailbox: MailboxRef,
  reader: MailboxReader,
  query: ListingQuery,
  waitSeconds: number
): Effect.Effect<ListingPage, HandlerFailure> =>
  withChangeWaiter(
    service,
    mailbox.to,
    call.exchange,
    Effect.fnUntraced(function*(waiter): Effect.fn.Return<ListingPage, HandlerFailure> {
      const endMs = performance.now() + waitSeconds * 1000
      let from = query
      for (;;) {
        const reply = yield* listAs(service, mailbox, reader)
        if (isRefusal(reply)) return yield* refusalError(reply)
        const page = yield* readPage(service, mailbox, reply.view, from)
        const leftMs = endMs - performance.now()
        if (page.entries.length > 0 || leftMs <= 0 || waiter.over) return page
        // The log may have grown by marks of removals, which the next read skips.
        from = { ...query, since: parseListingSince(page.time) }
        if (page.more) continue
        yield* waiter.next(Math.min(leftMs, watchRecheckMs))
      }
    })
  )

/**
 * One event stream. After each hint of a change it reads the log from its cursor, at the pace of
 * its reader, so that it neither skips nor repeats a notification.
 */
class MailboxStream {
  private readonly service: Service
  private readonly mailbox: MailboxRef
  private readonly reader: MailboxReader
  private readonly events: EventStream
  private after: number
  private isReading = false
  private readAgain = false

  constructor(
    service: Service,
    mailbox: MailboxRef,
    reader: MailboxReader,
    after: number,
    events: EventStream
  ) {
    this.service = service
    this.mailbox = mailbox
    this.reader = reader
    this.after = after
    this.events = events
  }

  start(): void {
    const unwatch = this.service.system.watch(this.mailbox.to, () => this.read())
    const timer = setInterval(() => this.read(), watchRecheckMs)
    this.events.onClose(() => {
      unwatch()
      clearInterval(timer)
    })
    this.read()
  }

  private read(): void {
    if (this.isReading) {
      this.readAgain = true
      return
    }
    this.isReading = true
    this.readAgain = false
    Effect.runFork(this.sendNew()).addObserver((exit) => {
      this.isReading = false
      // The client reconnects with its cursor, and gets the failure as an answer.
      if (exit._tag === "Failure") this.events.close()
      else if (this.readAgain && this.events.open) this.read()
    })
  }

  private sendNew(): Effect.Effect<void, HandlerFailure> {
    const { events, mailbox, service } = this
    return Effect.gen({ self: this }, function*() {
      while (events.open) {
        const reply = yield* listAs(service, mailbox, this.reader)
        if (isRefusal(reply)) {
          if (reply.reason === "Gone") events.send(eventText({ event: "gone", data: mailbox.href }))
          return events.close()
        }
        const items = yield* service.system.read(mailbox.to, this.after + 1, eventItemsMax)
        for (const item of items) {
          if (isRemoval(item.value)) {
            this.after = item.n
            continue
          }
          const entry = entryOf(item)
          const id = formatCursor(entry.atMs, entry.n)
          const data = entryXml(mailbox, entry)
          if (!events.send(eventText({ event: "notification", id, data }))) return
          this.after = entry.n
          if (!events.flowing) yield* awaitWritable(events)
        }
        if (!events.open) return
        const shown = items.filter(({ value }) => !isRemoval(value))
        reportRetrieved(service, mailbox, spansOf(shown))
        if (items.length < eventItemsMax) return
      }
    })
  }
}

/** The event stream of the notifications after number `after`. */
export const streamAnswer = (
  service: Service,
  mailbox: MailboxRef,
  reader: MailboxReader,
  after: number
): HandlerAnswer => ({
  _tag: "Events",
  headers: [["Vary", "Accept"], [...mailbox.link]],
  start: (events) => new MailboxStream(service, mailbox, reader, after, events).start()
})
