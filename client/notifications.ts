/** A mailbox as a stream that does not end: over lost connections, restarts and long silences. */
import { removeResource } from "./content.ts"
import { eventCharsMax, retryAfterMsMax, retryFieldMsMax, silenceMs } from "./limits.ts"
import { anySignal, backoffMs, Gone, type HttpTransport, type Json, type JsonObject, objectOf,
  optionalNumber, optionalObject, optionalText, pause, ProblemError, textOf, unexpected,
  UnexpectedAnswer, withQuery, xmlToJson } from "./transport/index.ts"

/** The copy that a mailbox with `fetch="eager"` keeps of a message. */
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
  /** Where the message is. */
  readonly url: string
  /** The message password. */
  readonly password: string | undefined
  /** The outgoing mailbox that it came from, where its sender wished that to be told. */
  readonly from: string | undefined
  readonly cached: CachedCopy | undefined
  /** The whole `item`, with elements that this package does not know. */
  readonly item: JsonObject
}

const cachedOf = (document: JsonObject): CachedCopy | undefined => {
  const cached = optionalObject(document, "cached")
  return cached === undefined ? undefined : {
    href: textOf(cached, "href"),
    type: optionalText(cached, "type"),
    lengthBytes: optionalNumber(cached, "length")
  }
}

/** Reads a notification of a listing, an event or a push. */
export const notificationOf = (document: JsonObject): Notification => {
  const item = objectOf(document, "item")
  return {
    href: textOf(document, "href"),
    received: textOf(document, "received"),
    description: textOf(item, "description"),
    url: textOf(item, "url"),
    password: optionalText(item, "password"),
    from: optionalText(item, "from"),
    cached: cachedOf(document),
    item
  }
}

/** Content that travels in the notification, and is published by the service. */
export interface InlineContent {
  readonly type: string
  /** Bytes are sent as base64. */
  readonly data: string | Uint8Array
}

/** What a notification says: what it is about, and either where the message is or the message. */
export interface NotificationInput {
  readonly description: string
  /** The URI of the message. */
  readonly url?: string | undefined
  /** Instead of `url`. */
  readonly content?: InlineContent | undefined
  /** The message password, which travels with the notification. */
  readonly password?: string | undefined
  /** Further elements of the `item`. */
  readonly extra?: Readonly<Record<string, Json>> | undefined
}

const encoded = ({ data, type }: InlineContent): JsonObject => {
  if (typeof data === "string") return { type, "#text": data }
  let bytes = ""
  for (const byte of data) bytes += String.fromCharCode(byte)
  return { type, encoding: "base64", "#text": btoa(bytes) }
}

/** The `item` of a letter, as JSON. */
export const itemOf = (
  { content, description, extra, password, url }: NotificationInput
): JsonObject => ({
  ...extra,
  description,
  ...url === undefined ? {} : { url },
  ...password === undefined ? {} : { password },
  ...content === undefined ? {} : { content: encoded(content) }
})

/* Server-sent events by the rules of WHATWG HTML §9.2.6, over a fetched stream. */

/** An event that was received whole. */
export interface StreamEvent {
  readonly type: string
  readonly data: string
  /** The id that was sent last, with this event or an earlier one. */
  readonly lastId: string
}

/** Takes the text of a stream in pieces, however it is cut, and gives its events. */
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

  /** The events that the next piece completes; throws UnexpectedAnswer for one that has no end. */
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

/** What is next of a stream; fails when it is silent for too long. */
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
 * The events of a stream up to its end. It is read no faster than they are asked for, so that a
 * slow reader holds one piece of it, and left when its reader leaves.
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
    // Its connection may be broken already, which is no news.
    reader.cancel().catch(() => {})
  }
}

/* A notification as a mailbox gives it out. */

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

/** The mailbox that a watch reads. */
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
    this.signal = anySignal(watched.transport.endpoint.signal, options.signal)
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
    // The first position may be a time, which is not an event id.
    const isInitial = this.cursor === this.options.after
    const stream = await transport.send(
      {
        method: "GET",
        uri: isInitial ? withQuery(href, { since: this.cursor }) : href,
        // A refusal comes as JSON: no other type is left for it.
        accept: "text/event-stream, application/problem+json;q=0.1",
        headers: { "last-event-id": isInitial ? undefined : this.cursor },
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
