/** A mailbox as a stream that does not end: over lost connections, restarts and long silences. */
import { backoffMs, either, pause } from "./backoff.ts"
import { removeResource } from "./content.ts"
import { Gone, ProblemError, UnexpectedAnswer } from "./errors.ts"
import { EventParser, eventsOf, type StreamEvent } from "./events.ts"
import { unexpected } from "./json.ts"
import { retryAfterMsMax, retryFieldMsMax } from "./limits.ts"
import { type Notification, notificationOf } from "./notification.ts"
import type { HttpTransport } from "./transport.ts"
import { xmlToJson } from "./xml.ts"

/** A notification of a stream, and the place right after it. */
export interface ReceivedNotification extends Notification {
  /** Go on after this notification with `watch({ after: cursor })`. */
  readonly cursor: string
}

/** How a watch stands with its service. */
export type Connection =
  | { readonly state: "open" }
  | { readonly state: "waiting"; readonly reason: unknown; readonly retryInMs: number }

/** What to watch. */
export interface Watching {
  /**
   * Where to begin: a cursor of an earlier notification, page or push, any RFC 3339 time, or
   * `now`. From the mailbox's beginning unless given.
   */
  readonly after?: string | undefined
  /**
   * Removes each notification from the mailbox when the next one is asked for: the one that was
   * under way when a program ended comes again.
   */
  readonly acknowledge?: boolean | undefined
  /** Told when the connection is lost, with the reason, and when it is there again. */
  readonly onConnection?: ((connection: Connection) => void) | undefined
  /** Ends the watch: it throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/** Whom a watch asks. */
export interface Watched {
  readonly transport: HttpTransport
  readonly href: string
  readonly authorization: string | undefined
  /** The cursor after all that is there at present. */
  readonly now: () => Promise<string>
}

/** Whether it will be no better later. */
const isFinal = (error: unknown): boolean =>
  error instanceof UnexpectedAnswer ||
  (error instanceof ProblemError && error.status < 500 && ![408, 425, 429].includes(error.status))

const deleted = (href: string): Gone =>
  new Gone({
    status: 410,
    type: "about:blank",
    title: "Deleted",
    detail: "the mailbox has been deleted",
    instance: href.replace(/~.*/, "~"),
    retryAfterMs: undefined,
    extensions: {}
  })

/**
 * The notifications of a mailbox in the order of their deposit, each once: those that are there,
 * then those to come. Iterated a second time, it goes on after the last one that it gave. It
 * throws what will be no better later, such as Gone when the mailbox is deleted; and, when the
 * service does not answer the first time, ConnectionError.
 */
export class Watch implements AsyncIterable<ReceivedNotification> {
  /** After the last notification that was given; keep it to go on after a restart. */
  cursor: string | undefined
  private readonly watched: Watched
  private readonly options: Watching
  private readonly signal: AbortSignal | undefined
  private busy = false
  private opened = false
  /** Given and handled, and not removed yet. */
  private handled: string | undefined

  constructor(watched: Watched, options: Watching) {
    this.watched = watched
    this.options = options
    this.signal = either(watched.transport.endpoint.signal, options.signal)
    this.cursor = options.after === "now" ? undefined : options.after
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ReceivedNotification, void, void> {
    if (this.busy) throw new TypeError("a watch is iterated by one loop at a time")
    this.busy = true
    try {
      if (this.options.after === "now") this.cursor ??= await this.watched.now()
      for (let lost = 1;; lost++) {
        const parser = new EventParser(this.cursor)
        let reason: unknown
        try {
          await this.acknowledged()
          const events = await this.open(parser)
          lost = 1
          for await (const event of events) {
            const received = this.receivedOf(event)
            if (received === undefined) continue
            this.cursor = received.cursor
            yield received
            if (this.options.acknowledge === true) this.handled = received.href
            await this.acknowledged()
          }
          reason = new Error("the service ended the stream")
        } catch (error) {
          reason = error
        }
        await this.lost(reason, parser, lost)
      }
    } finally {
      this.busy = false
    }
  }

  private async open(parser: EventParser): Promise<AsyncIterable<StreamEvent>> {
    const { authorization, href, transport } = this.watched
    const stream = await transport.ask(
      {
        method: "GET",
        uri: href,
        // A refusal comes as JSON: no other type is left for it.
        accept: "text/event-stream, application/problem+json;q=0.1",
        headers: { "last-event-id": this.cursor },
        authorization,
        signal: this.signal,
        // From then on it is this loop that has the patience.
        ...this.opened ? { attempts: 1 } : {}
      },
      ({ body, headers }) =>
        body !== null && headers.get("content-type")?.startsWith("text/event-stream") === true
          ? body
          : unexpected("it is no event stream")
    )
    this.opened = true
    this.options.onConnection?.({ state: "open" })
    return eventsOf(stream, parser)
  }

  private receivedOf({ data, lastId, type }: StreamEvent): ReceivedNotification | undefined {
    if (type === "gone") throw deleted(this.watched.href)
    if (type !== "notification") return undefined
    return { ...notificationOf(xmlToJson(data)), cursor: lastId }
  }

  private async acknowledged(): Promise<void> {
    const { handled, signal } = this
    if (handled === undefined) return
    const { authorization, transport } = this.watched
    await removeResource(transport, handled, { signal }, authorization)
    this.handled = undefined
  }

  /** Waits before the next connection, unless there is to be none. */
  private async lost(reason: unknown, parser: EventParser, times: number): Promise<void> {
    if (this.signal?.aborted === true) throw this.signal.reason
    if (!this.opened || isFinal(reason)) throw reason
    const asked = reason instanceof ProblemError ? reason.retryAfterMs : undefined
    const firstMs = parser.retryMs === undefined
      ? undefined
      : Math.min(parser.retryMs, retryFieldMsMax)
    const retryInMs = asked === undefined
      ? backoffMs(times, firstMs)
      : Math.min(asked, retryAfterMsMax)
    this.options.onConnection?.({ state: "waiting", reason, retryInMs })
    await pause(retryInMs, this.signal)
  }
}
