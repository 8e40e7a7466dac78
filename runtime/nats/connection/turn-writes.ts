/**
 * The messages of one turn of the event loop, which go to the server in one write. The client
 * library writes after each microtask queue, so once for each callback. Under load a third of a
 * node's time went into such writes.
 *
 * While many requests are in flight, a node also gathers the messages of the next turns: each write
 * wakes the server or another node, which costs more than the messages. It gathers one message for
 * each `busyInFlightShare` requests in flight. So by Little's law (1961) it waits for that share of
 * the time that a request takes, whatever the rate is.
 */
import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node"
import { busyInFlight, busyInFlightShare, busyWaitMs, turnMessagesMax } from "../../limits.ts"

/** Encoded headers; the connection only calls `encode`. */
class RawHeaders {
  private readonly bytes: Buffer

  constructor(text: string) {
    this.bytes = Buffer.from(text, "latin1")
  }

  encode(): Uint8Array {
    return this.bytes
  }
}

/** A whole header block, as the client library's type. */
export const rawHeaders = (text: string): MsgHdrs =>
  // The connection calls `encode` and nothing else of what it publishes.
  new RawHeaders(text) as unknown as MsgHdrs

/** What a published message has besides its subject and its data. */
export interface Publication {
  readonly reply?: string
  /** A whole header block, ASCII: `NATS/1.0\r\nName: value\r\n\r\n`. */
  readonly headersText?: string
}

interface WaitingMessage {
  readonly subject: string
  readonly data: Uint8Array | string
  readonly publication: Publication
}

/** What the client library's connection writes with; its types do not show it. */
interface ByteWriter {
  /** Writes bytes of the protocol of NATS when the microtasks have run. */
  readonly sendCommand: (bytes: Uint8Array) => void
  /** Statistics of the connection. */
  outMsgs: number
  outBytes: number
}

/** Undefined for a connection that is not the client library's, such as a simulated one. */
const byteWriterOf = (nc: NatsConnection): ByteWriter | undefined => {
  const { protocol } = nc as unknown as { readonly protocol?: Partial<ByteWriter> }
  return typeof protocol?.sendCommand === "function" ? protocol as ByteWriter : undefined
}

const whiteSpace = /\s/

/** Bytes that a text takes at most: a UTF-16 unit takes at most three. */
const bytesMaxOf = (data: Uint8Array | string): number =>
  typeof data === "string" ? 3 * data.length : data.length

/** Whether a message has more bytes. Most texts are so short that nobody needs to count. */
export const isLarger = (data: Uint8Array | string, bytes: number): boolean =>
  bytesMaxOf(data) > bytes && Buffer.byteLength(data) > bytes

/** Publishes the messages of one turn of the event loop, or of a few under load, in one write. */
export class TurnWrites {
  /** Messages published, and the turns in which there were any. */
  messages = 0
  writes = 0
  private readonly nc: NatsConnection
  private waiting: Array<WaitingMessage> = []
  private ending: Array<() => void> = []
  /** Messages that the callbacks at the end of the turn will publish. */
  private expected = 0
  private scheduled = false
  /** So many messages are written at once. */
  private enough = 0
  private timer: NodeJS.Timeout | undefined
  private readonly inFlight: Array<() => number> = []

  constructor(nc: NatsConnection) {
    this.nc = nc
  }

  /**
   * Publishes at the end of this turn or a little later, in the order of the calls. Throws an Error
   * when the connection is closed, the message is too large for the server, or a subject has white
   * space, which would end it.
   */
  publish(subject: string, data: Uint8Array | string, publication: Publication = {}): void {
    if (this.nc.isClosed()) throw new Error("the connection to NATS is closed")
    if (whiteSpace.test(subject) || whiteSpace.test(publication.reply ?? "")) {
      throw new Error(`white space in a subject: ${JSON.stringify(subject)}`)
    }
    const payloadMax = this.nc.info?.max_payload ?? Number.POSITIVE_INFINITY
    const bytesMax = payloadMax - (publication.headersText?.length ?? 0)
    if (isLarger(data, bytesMax)) {
      throw new Error(`a message of more than ${payloadMax} bytes, the max_payload of the server`)
    }
    this.waiting.push({ subject, data, publication })
    this.schedule()
  }

  /** Adds a count of requests in flight. */
  countInFlight(count: () => number): void {
    this.inFlight.push(count)
  }

  /** Calls `run` at the end of this turn, with whose write its messages go; it must not throw. */
  atEnd(run: () => void): void {
    this.ending.push(run)
    this.schedule()
  }

  /** Counts a message that a callback of `atEnd` will publish, alone or with others as one. */
  expect(): void {
    this.expected++
    this.schedule()
  }

  /** Writes now what waits for the end of the turn, such as before the connection closes. */
  readonly flush = (): void => {
    this.scheduled = false
    clearTimeout(this.timer)
    this.timer = undefined
    const { ending } = this
    this.ending = []
    this.expected = 0
    for (const run of ending) run()
    const { waiting } = this
    this.waiting = []
    if (waiting.length === 0) return
    this.writes++
    const writer = byteWriterOf(this.nc)
    if (writer === undefined) { for (const message of waiting) this.publishOne(message) }
    // A connection that has closed loses them, like one that breaks.
    else if (!this.nc.isClosed()) this.writeTogether(writer, waiting)
  }

  private publishOne(message: WaitingMessage): void {
    const { data, publication: { headersText, reply }, subject } = message
    try {
      this.nc.publish(subject, data, {
        ...reply === undefined ? {} : { reply },
        ...headersText === undefined ? {} : { headers: rawHeaders(headersText) }
      })
      this.messages++
    } catch {
      // The connection has closed: the message is lost, as on a connection that breaks.
    }
  }

  /**
   * Writes the messages as the bytes of the protocol of NATS (`PUB`, `HPUB`). Texts are joined
   * before they become bytes: by the client library each message takes four arrays and a copy.
   */
  private writeTogether(writer: ByteWriter, messages: ReadonlyArray<WaitingMessage>): void {
    let text = ""
    for (const { data, publication: { headersText = "", reply = "" }, subject } of messages) {
      const length = headersText.length + Buffer.byteLength(data)
      const to = reply === "" ? subject : `${subject} ${reply}`
      text += headersText === ""
        ? `PUB ${to} ${length}\r\n`
        : `HPUB ${to} ${headersText.length} ${length}\r\n${headersText}`
      if (typeof data === "string") text += data
      else {
        writer.sendCommand(Buffer.from(text))
        writer.sendCommand(data)
        text = ""
      }
      text += "\r\n"
      this.messages++
      writer.outMsgs++
      writer.outBytes += length
    }
    writer.sendCommand(Buffer.from(text))
  }

  private schedule(): void {
    if (!this.scheduled) return this.begin()
    if (this.timer === undefined || this.waiting.length + this.expected < this.enough) return
    clearTimeout(this.timer)
    this.timer = undefined
    setImmediate(this.flush)
  }

  /** Begins to gather messages. */
  private begin(): void {
    this.scheduled = true
    let inFlight = 0
    for (const count of this.inFlight) inFlight += count()
    if (inFlight < busyInFlight) return void setImmediate(this.flush)
    this.enough = Math.min(turnMessagesMax, Math.ceil(inFlight / busyInFlightShare))
    this.timer = setTimeout(this.flush, busyWaitMs)
  }
}
