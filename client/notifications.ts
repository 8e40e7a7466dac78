/** Watches a mailbox as an endless stream, over lost connections and restarts of the service. */
import { eventCharsMax, reconnectMsMin, retryAfterMsMax, retryFieldMsMax,
  silenceMs } from "./limits.ts"
import { anySignal, backoffMs, defined, Gone, type HttpTransport, type Json, type JsonObject,
  objectOf, optionalNumber, optionalObject, optionalText, pause, ProblemError, textOf, unexpected,
  UnexpectedAnswer, UnknownCursor, withQuery, xmlToJson } from "./transport/index.ts"

/** The copy of a message that a mailbox with `fetch="eager"` stores. */
export interface CachedCopy {
  readonly href: string
  readonly type: string | undefined
  readonly lengthBytes: number | undefined
}

/** A notification in a mailbox. */
export interface Notification {
  /** Its URI. */
  readonly href: string
  /** When it was deposited, RFC 3339, by the service's clock. */
  readonly received: string
  readonly description: string
  /** The URI of the message. */
  readonly url: string
  /** The message password. */
  readonly password: string | undefined
  /** The sender's outgoing mailbox, if the sender disclosed it. */
  readonly from: string | undefined
  readonly cached: CachedCopy | undefined
  /** The whole `item`, with elements that this package does not read. */
  readonly item: JsonObject
}

const cachedOf = (
  document: JsonObject,
  resolve: (reference: string) => string
): CachedCopy | undefined => {
  const cached = optionalObject(document, "cached")
  return cached === undefined ? undefined : {
    href: resolve(textOf(cached, "href")),
    type: optionalText(cached, "type"),
    lengthBytes: optionalNumber(cached, "length")
  }
}

const unresolved = (reference: string): string => reference

/** Reads a notification of a listing, an event or a push; `resolve` makes its URIs absolute. */
export const notificationOf = (document: JsonObject, resolve = unresolved): Notification => {
  const item = objectOf(document, "item")
  return {
    href: resolve(textOf(document, "href")),
    received: textOf(document, "received"),
    description: textOf(item, "description"),
    url: resolve(textOf(item, "url")),
    password: optionalText(item, "password"),
    from: optionalText(item, "from"),
    cached: cachedOf(document, resolve),
    item
  }
}

/** Content inside the notification, which the service publishes. */
export interface InlineContent {
  readonly type: string
  /** Bytes are sent as base64. */
  readonly data: string | Uint8Array
}

/** A notification to deposit: a description, and the message by `url` or as `content`. */
export interface NotificationInput {
  readonly description: string
  /** The URI of the message. */
  readonly url?: string | undefined
  /** Instead of `url`. */
  readonly content?: InlineContent | undefined
  /** The message password, which the notification contains. */
  readonly password?: string | undefined
  /** 5 is the greatest; readers take 3 for a notification without one. */
  readonly priority?: 1 | 2 | 3 | 4 | 5 | undefined
  /** Up to 20, none of which has a comma. */
  readonly tags?: ReadonlyArray<string> | undefined
  /** What a reader is to open by a click: an http or https URI. */
  readonly click?: string | undefined
  /** Further elements of the `item`. */
  readonly extra?: Readonly<Record<string, Json>> | undefined
}

const encoded = ({ data, type }: InlineContent): JsonObject => {
  if (typeof data === "string") return { type, text: data }
  let bytes = ""
  for (const byte of data) bytes += String.fromCharCode(byte)
  return { type, encoding: "base64", text: btoa(bytes) }
}

/** The `item` of a notification, as JSON. */
export const itemOf = (
  { click, content, description, extra, password, priority, tags = [], url }: NotificationInput
): JsonObject => ({
  ...extra,
  description,
  ...defined({
    url,
    password,
    content: content && encoded(content),
    priority: priority?.toString(),
    tags: tags.length === 0 ? undefined : tags.join(","),
    click
  })
})

/* Server-sent events by the rules of WHATWG HTML §9.2.6, over a fetched stream. */

/** A complete event. */
export interface StreamEvent {
  readonly type: string
  readonly data: string
  /** The last id, of this event or an earlier one. */
  readonly lastId: string
}

/** Parses the events of a stream from its text in arbitrary pieces. */
export class EventParser {
  /** Set by a `retry` field: the pause before the next connection. */
  retryMs: number | undefined
  private rest = ""
  private skipLineFeed = false
  private isFirst = true
  private data: Array<string> = []
  private type = ""
  private id = ""
  private chars = 0

  /** `lastId` is the id of an earlier connection. */
  constructor(lastId = "") {
    this.id = lastId
  }

  /** The events that this piece completes; throws UnexpectedAnswer for one that is too long. */
  push(piece: string): ReadonlyArray<StreamEvent> {
    const events: Array<StreamEvent> = []
    let text = piece
    if (this.isFirst && text !== "") {
      this.isFirst = false
      if (text.startsWith("\ufeff")) text = text.slice(1)
    }
    // A CR ended the last line; an LF right after it belongs to that end.
    if (this.skipLineFeed && text !== "") {
      this.skipLineFeed = false
      if (text.startsWith("\n")) text = text.slice(1)
    }
    this.chars += text.length
    let start = 0
    for (const { 0: end, index } of text.matchAll(/\r\n|\r|\n/g)) {
      this.line(this.rest + text.slice(start, index), events)
      this.rest = ""
      start = index + end.length
      this.skipLineFeed = end === "\r" && start === text.length
    }
    this.rest += text.slice(start)
    if (this.rest.length > eventCharsMax || this.chars > eventCharsMax + text.length) {
      return unexpected("an event is too long")
    }
    return events
  }

  private line(line: string, events: Array<StreamEvent>): void {
    if (line === "") return this.dispatch(events)
    if (line.startsWith(":")) return
    const colon = line.indexOf(":")
    const name = colon < 0 ? line : line.slice(0, colon)
    const after = colon < 0 ? "" : line.slice(colon + 1)
    const value = after.startsWith(" ") ? after.slice(1) : after
    if (name === "data") this.data.push(value)
    else if (name === "event") this.type = value
    else if (name === "id" && !value.includes("\0")) this.id = value
    else if (name === "retry" && /^\d{1,9}$/.test(value)) this.retryMs = Number(value)
  }

  private dispatch(events: Array<StreamEvent>): void {
    const { data, id, type } = this
    this.data = []
    this.type = ""
    this.chars = 0
    if (data.length === 0) return
    events.push({ type: type === "" ? "message" : type, data: data.join("\n"), lastId: id })
  }
}

/** Reads the next chunk; fails after {@link silenceMs} without one. */
const readWithin = async (
  reader: ReadableStreamDefaultReader<Uint8Array>
): Promise<ReadableStreamReadResult<Uint8Array>> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came in ${silenceMs} ms`)), silenceMs)
  })
  try {
    return await Promise.race([reader.read(), silence])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The events of a stream up to its end. It reads the next chunk only when the caller needs it, so
 * a slow caller buffers one chunk. When the caller stops, it cancels the stream.
 */
export async function* eventsOf(
  stream: ReadableStream<Uint8Array>,
  parser: EventParser
): AsyncGenerator<StreamEvent, void, void> {
  const reader = stream.getReader()
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  try {
    for (;;) {
      const { done, value } = await readWithin(reader)
      if (done) return
      yield* parser.push(decoder.decode(value, { stream: true }))
    }
  } finally {
    // The connection may already be broken.
    reader.cancel().catch(() => {})
  }
}

/* Watching a mailbox. */

/** A notification of a stream, and the cursor right after it. */
export interface ReceivedNotification extends Notification {
  /** Continue after this notification with `watch({ after: cursor })`. */
  readonly cursor: string
}

/** The state of a watch's connection. */
export type Connection =
  | { readonly state: "open" }
  | { readonly state: "waiting"; readonly reason: unknown; readonly retryInMs: number }

/** Options of a watch. */
export interface Watching {
  /**
   * Where to begin: the cursor of an earlier notification, page or push, any RFC 3339 time, or
   * `now`. By default the watch begins with the oldest notification.
   */
  readonly after?: string | undefined
  /**
   * Removes each notification from the mailbox when the loop requests the next one. If the program
   * ends while it handles a notification, it receives that one again.
   */
  readonly acknowledge?: boolean | undefined
  /** Called when the connection is lost, with the reason, and when it is open again. */
  readonly onConnection?: ((connection: Connection) => void) | undefined
  /**
   * Called when notifications that followed the cursor have been removed: other readers deleted
   * them, or their retention ended. The watch continues with those that the mailbox still has.
   */
  readonly onDiscarded?: (() => void) | undefined
  /** Ends the watch, which then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/** The mailbox that a watch reads. */
export interface Watched {
  readonly transport: HttpTransport
  readonly href: string
  /** Returns the cursor after the newest notification. */
  readonly now: () => Promise<string>
}

/** Reads a notification in an answer of the resource `source`. */
export const notificationFrom =
  (transport: HttpTransport, source: string) => (document: JsonObject): Notification =>
    notificationOf(document, (reference) => transport.resolve(reference, source))

/** Whether a retry cannot succeed. */
const isFinal = (error: unknown): boolean =>
  error instanceof UnexpectedAnswer ||
  (error instanceof ProblemError && error.status < 500 && ![408, 425, 429].includes(error.status))

const deleted = (href: string): Gone =>
  new Gone({
    status: 410,
    title: "Deleted",
    detail: "the mailbox has been deleted",
    instance: href.replace(/~.*/, "~")
  })

const unknownCursor = (href: string, detail: string | undefined): UnknownCursor =>
  new UnknownCursor({
    status: 400,
    title: "The position is not known here",
    detail,
    instance: href.replace(/~.*/, "~")
  })

/**
 * The notifications of a mailbox in the order of their deposit, each once: the present ones, then
 * new ones. A second loop continues after the last notification of the first loop. It throws
 * permanent failures, such as Gone when the mailbox is deleted, and UnknownCursor when `after` is
 * not of this mailbox or the service was restored from a backup: begin again without `after`. It
 * throws ConnectionError only when the first connection fails.
 */
export class Watch implements AsyncIterable<ReceivedNotification> {
  /** After the last notification of the loop; store it to continue after a restart. */
  cursor: string | undefined
  private readonly watched: Watched
  private readonly options: Watching
  private readonly signal: AbortSignal | undefined
  private busy = false
  private opened = false
  /** URI of the notification that the loop has handled, until it is removed. */
  private handled: string | undefined

  constructor(watched: Watched, options: Watching) {
    this.watched = watched
    this.options = options
    this.signal = anySignal(watched.transport.endpoint.signal, options.signal)
    this.cursor = options.after === "now" ? undefined : options.after
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ReceivedNotification, void, void> {
    if (this.busy) throw new TypeError("a watch is iterated by one loop at a time")
    this.busy = true
    try {
      if (this.options.after === "now") this.cursor ??= await this.watched.now()
      for (let attempt = 1;; attempt++) {
        const parser = new EventParser(this.cursor)
        let reason: unknown
        try {
          await this.removeHandled()
          const events = await this.open(parser)
          attempt = 1
          for await (const event of events) {
            const received = this.parseReceived(event)
            if (received === undefined) continue
            this.cursor = received.cursor
            yield received
            if (this.options.acknowledge === true) this.handled = received.href
            await this.removeHandled()
          }
          reason = new Error("the service ended the stream")
        } catch (error) {
          reason = error
        }
        await this.backOff(reason, parser, attempt)
      }
    } finally {
      this.busy = false
    }
  }

  private async open(parser: EventParser): Promise<AsyncIterable<StreamEvent>> {
    const { href, transport } = this.watched
    // The first position may be a time, which is not an event id.
    const isInitial = this.cursor === this.options.after
    const stream = await transport.send(
      {
        method: "GET",
        uri: isInitial ? withQuery(href, { since: this.cursor }) : href,
        // The service sends refusals as JSON.
        accept: "text/event-stream, application/problem+json;q=0.1",
        headers: { "last-event-id": isInitial ? undefined : this.cursor },
        signal: this.signal,
        // After the first connection, the loop itself retries.
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

  private parseReceived({ data, lastId, type }: StreamEvent): ReceivedNotification | undefined {
    if (type === "gone") throw deleted(this.watched.href)
    if (type === "position") this.continueAt(xmlToJson(data), lastId)
    if (type !== "notification") return undefined
    const { href, transport } = this.watched
    return { ...notificationFrom(transport, href)(xmlToJson(data)), cursor: lastId }
  }

  /** The service cannot continue exactly after the cursor. */
  private continueAt(position: JsonObject, cursor: string): void {
    if (textOf(position, "state") !== "discarded") {
      throw unknownCursor(this.watched.href, optionalText(position, "detail"))
    }
    this.cursor = cursor
    this.options.onDiscarded?.()
  }

  private async removeHandled(): Promise<void> {
    const { handled, signal } = this
    if (handled === undefined) return
    const { href, transport } = this.watched
    const uri = transport.below(href, "notifications", transport.follow(handled, href))
    await transport.remove(uri, { signal })
    this.handled = undefined
  }

  /** Waits before the next connection; throws when there is none. */
  private async backOff(reason: unknown, parser: EventParser, attempt: number): Promise<void> {
    if (this.signal?.aborted === true) throw this.signal.reason
    if (!this.opened || isFinal(reason)) throw reason
    const retryAfter = reason instanceof ProblemError ? reason.retryAfterMs : undefined
    const firstMs = parser.retryMs === undefined
      ? undefined
      : Math.min(parser.retryMs, retryFieldMsMax)
    const askedMs = retryAfter === undefined
      ? backoffMs(attempt, firstMs)
      : Math.min(retryAfter, retryAfterMsMax)
    const retryInMs = Math.max(askedMs, reconnectMsMin)
    this.options.onConnection?.({ state: "waiting", reason, retryInMs })
    await pause(retryInMs, this.signal)
  }
}
