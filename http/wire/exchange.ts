/** Answers one request; independent of the server library. */
import { lastAnswerBytesMax, refusedBodyBytesMax, storedUploadBytes, turnBytesMax,
  uploadBufferBytesMax } from "../limits.ts"
import { type HeldAnswer, placePace, type ReadingPace, sendRest,
  type UnreadBudget } from "./answers/index.ts"
import type { BodyBudget } from "./body-budget.ts"
import { PartialDocument } from "./document.ts"
import { EventStream } from "./event-stream.ts"
import { checkFields, joinFields, joinHeaders, type KeptFields, type ReplyHeaders,
  type StatusLines } from "./header-fields.ts"
import type { NativeResponse } from "./native-response.ts"
import type { BodyFault, HttpRequest } from "./request.ts"
import { type AnswerBytes, sendStream } from "./response-stream.ts"
import { Spill, type SpillFolder, Upload } from "./uploads/index.ts"

/** An answer with its complete body. */
export interface HttpReply {
  readonly status: number
  readonly headers: ReplyHeaders
  /** Further fields; then `headers` get no policies. */
  readonly kept?: KeptFields
  readonly body?: string | Uint8Array | undefined
}

/** Header fields of every event stream. */
export const eventHeaders: ReplyHeaders = [
  ["Content-Type", "text/event-stream"],
  ["Cache-Control", "no-store"],
  ["X-Accel-Buffering", "no"]
]

/** The state that all exchanges of a server share. */
export interface Shared {
  readonly statusLines: StatusLines
  readonly bodies: BodyBudget
  readonly unread: UnreadBudget
  /** The network of a request's client, whose unread answers are bounded. */
  readonly networkOf: (request: HttpRequest) => string
  /** Where the bytes of uploads wait that arrive although their clients are paused. */
  readonly spills: SpillFolder
  readonly packetEnd: PacketEnd
  readonly onError: (error: unknown) => void
  readonly streams: Set<EventStream>
  readonly drainers: Set<() => void>
  inFlight: number
  draining: boolean
  /** Bytes of the answers of this turn of the event loop. */
  turnBytes: number
  settled: (() => void) | undefined
}

/**
 * Calls back when the parser has read the rest of the packet as requests, and what the other
 * connections brought in this turn. If it finds a request while the answer is pending, or bytes
 * that it refuses, it ends the connection. Both are intended behind the last request of a
 * connection: the answer waits, and so does the end of a chunked body, which the parser may find
 * where trailer fields begin.
 *
 * One immediate for all callbacks of a turn takes half of the time of one for each.
 */
export class PacketEnd {
  private waiting: Array<() => void> = []

  private readonly run = (): void => {
    const due = this.waiting
    this.waiting = []
    let begun = 0
    try {
      while (begun < due.length) due[begun++]?.()
    } finally {
      // The others are of other clients.
      for (const callback of due.slice(begun)) this.call(callback)
    }
  }

  call(callback: () => void): void {
    if (this.waiting.length === 0) setImmediate(this.run)
    this.waiting.push(callback)
  }
}

/** Reads the body of one request and sends its answer. It is answered or aborted exactly once. */
export class Exchange {
  private readonly native: NativeResponse
  private readonly shared: Shared
  private readonly request: HttpRequest
  private readonly isHead: boolean
  private readonly declaredBytes: number
  private readonly isLast: boolean
  private aborted = false
  private upload: Upload | undefined
  /** Releases what an unfinished body takes. */
  private dropBody: (() => void) | undefined
  /** The body will not be read to its end. */
  private isGivenUp = false
  private hasAnswered = false
  private bodyDone: boolean
  private abortCallback: (() => void) | undefined
  private extraHeaders = ""
  private isGuarded = false

  /**
   * `declaredBytes` is the Content-Length, 0 without a body, -1 if chunked. `isLast` means that the
   * connection ends with the answer, and the server reads nothing after the request.
   */
  constructor(
    native: NativeResponse,
    shared: Shared,
    request: HttpRequest,
    framing: { readonly declaredBytes: number; readonly isLast: boolean }
  ) {
    const { declaredBytes, isLast } = framing
    this.native = native
    this.shared = shared
    this.request = request
    this.isHead = request.method === "HEAD"
    this.declaredBytes = declaredBytes
    this.isLast = isLast
    this.bodyDone = declaredBytes === 0
    shared.inFlight += 1
    native.onAborted(() => this.abort())
  }

  get answered(): boolean {
    return this.hasAnswered
  }

  /** Whether the client left before the answer was complete. */
  get isAborted(): boolean {
    return this.aborted
  }

  /** Adds header fields to the answer, of any status. */
  also(headers: ReplyHeaders): void {
    this.extraHeaders = joinFields(headers)
  }

  /** Calls back once if the client leaves before the answer is complete. */
  onAbort(callback: () => void): void {
    const before = this.abortCallback
    this.abortCallback = before === undefined ? callback : () => {
      before()
      callback()
    }
  }

  /** Calls back once when the server begins to drain; long polls then answer immediately. */
  onDrain(callback: () => void): () => void {
    if (this.shared.draining) queueMicrotask(callback)
    else this.shared.drainers.add(callback)
    return () => this.shared.drainers.delete(callback)
  }

  private abort(): void {
    if (this.aborted) return
    this.aborted = true
    if (!this.hasAnswered) this.settle()
    this.abortCallback?.()
  }

  private settle(): void {
    const shared = this.shared
    shared.inFlight -= 1
    if (shared.inFlight === 0 && shared.settled !== undefined) shared.settled()
  }

  /** See {@link PacketEnd}. */
  private afterPacket(callback: () => void): void {
    this.shared.packetEnd.call(callback)
  }

  private get isChunked(): boolean {
    return this.declaredBytes < 0
  }

  /**
   * Passes a copy of the whole body, at most `bytesMax`, to `done`. After `TooLarge`, `Timeout` and
   * `NoRoom` the request still needs an answer, which also closes the connection. `networkOf`: the
   * client's network, whose unfinished bodies are bounded.
   *
   * A whole body is passed when all packets of the turn have been read. A processor that reads all
   * of them, and then handles all of them, has the code of each in its caches: a deposit takes 8 to
   * 12 % less of its time.
   */
  bytes(
    bytesMax: number,
    networkOf: () => string,
    done: (body: Uint8Array | BodyFault) => void
  ): void {
    if (this.aborted) return done({ _tag: "Aborted" })
    const sizeBytes = this.declaredBytes
    if (sizeBytes > bytesMax) return done({ _tag: "TooLarge", bytesMax, sizeBytes })
    let size = 0
    let partial: PartialDocument | undefined
    let over = false
    // Whatever follows: behind a chunked body, it may be a part of it that the parser refuses.
    let isWhole = false
    const finish = (body: Uint8Array | BodyFault): void => {
      if (over) return
      over = true
      partial?.release()
      if (!(body instanceof Uint8Array) && body._tag !== "Aborted") this.stopReading()
      done(body)
    }
    const fail = (fault: BodyFault): void => {
      if (!isWhole) finish(fault)
    }
    const begun = (): PartialDocument => {
      if (partial !== undefined) return partial
      const giveUp = (afterMs: number) => fail({ _tag: "Timeout", afterMs })
      partial = new PartialDocument(this.shared.bodies, networkOf(), giveUp, () => this.keep())
      this.dropBody = () => fail({ _tag: "Aborted" })
      return partial
    }
    this.native.onData((chunk, isLast) => {
      if (isLast) this.bodyDone = true
      if (over) return
      // The rest of an answered request is discarded, and takes nothing.
      if (this.hasAnswered) return finish({ _tag: "Aborted" })
      size += chunk.byteLength
      if (size > bytesMax) return finish({ _tag: "TooLarge", bytesMax })
      const piece = new Uint8Array(chunk)
      if (isLast) {
        const whole = partial === undefined ? Buffer.from(piece) : partial.whole(piece)
        isWhole = !this.isChunked
        return this.afterPacket(() => finish(this.hasAnswered ? { _tag: "Aborted" } : whole))
      }
      const shortage = begun().add(piece)
      if (shortage !== undefined) finish({ _tag: "NoRoom", shortage })
    })
    if (this.declaredBytes === 0) return
    this.onAbort(() => fail({ _tag: "Aborted" }))
    this.shared.bodies.expect(() => {
      if (over || this.bodyDone || this.hasAnswered || partial !== undefined) return
      const shortage = begun().begin()
      if (shortage !== undefined) finish({ _tag: "NoRoom", shortage })
    })
  }

  /** The rest of the body is not read. The native server does not end the connection meanwhile. */
  private stopReading(): void {
    // A complete body leaves nothing to read: the connection continues with its next request.
    if (this.bodyDone) return
    this.isGivenUp = true
    if (!this.aborted && !this.hasAnswered) this.native.pause()
  }

  /** Ends a connection that sends on: nothing else ends the turn of the event loop. */
  private cut(turnBytes: number): void {
    if (this.aborted || this.hasAnswered) return
    this.shared.onError(
      new Error(
        `an upload brought ${turnBytes} bytes in one turn of the event loop, so its connection ` +
          "was ended and nothing was stored: let its client or the proxy send more slowly"
      )
    )
    this.native.close()
  }

  /** Lets the native server wait for more of the body: its own time begins again. */
  private keep(): void {
    if (this.aborted || this.hasAnswered) return
    this.native.pause()
    this.native.resume()
  }

  /**
   * The body as it arrives, at most `bytesMax`; slow readers pause the client.
   * After a `BodyError` the reader must discard what it read. Call it before the handler returns to
   * the event loop; only one reader may read it. `networkOf` as in {@link bytes}.
   */
  stream(bytesMax: number, networkOf: () => string): Upload {
    const native = this.native
    const upload = new Upload(bytesMax, uploadBufferBytesMax, {
      pause: () => native.pause(),
      resume: () => {
        if (!this.aborted && !this.hasAnswered) native.resume()
      },
      failed: () => this.stopReading(),
      cut: (turnBytes) => this.cut(turnBytes)
    }, new Spill(this.shared.spills, networkOf))
    if (this.aborted) upload.fail({ _tag: "Aborted" })
    const sizeBytes = this.declaredBytes
    if (sizeBytes > bytesMax) upload.fail({ _tag: "TooLarge", bytesMax, sizeBytes })
    if (!upload.destroyed && this.declaredBytes !== 0) this.holdUpload(upload, networkOf())
    if (upload.destroyed) return upload
    this.upload = upload
    native.onData((chunk, isLast) => {
      if (isLast) this.bodyDone = true
      upload.receive(chunk, isLast)
      if (!isLast) return
      if (this.isChunked) this.afterPacket(() => upload.complete())
      else upload.complete()
    })
    this.onAbort(() => upload.fail({ _tag: "Aborted" }))
    return upload
  }

  /** Lets an upload count against the budget until it is answered, or given up. */
  private holdUpload(upload: Upload, network: string): void {
    const held = this.shared.bodies.hold(network, {
      isSteady: true,
      giveUp: (afterMs) => upload.fail({ _tag: "Timeout", afterMs }),
      keep: () => this.keep()
    })
    const announced = this.isChunked ? storedUploadBytes : this.declaredBytes
    this.dropBody = () => held.release()
    upload.hold(held, Math.min(storedUploadBytes, announced))
    this.onAbort(() => held.release())
  }

  /** Lets pages of other origins read the answer only if the operator names their origin. */
  guard(): void {
    this.isGuarded = true
  }

  /** Begins the answer; false if the client is gone. Answering twice is a defect. */
  private begin(): boolean {
    if (this.hasAnswered) throw new Error("this request was answered already")
    const { upload } = this
    if (!this.aborted) {
      upload?.release()
      this.hasAnswered = true
      this.dropBody?.()
    }
    // Nobody reads it any more. A complete upload does not end when its client disconnects.
    upload?.destroy()
    return !this.aborted
  }

  /** Whether the connection must end with this answer. */
  private closes(): boolean {
    if (this.shared.draining || this.isLast) return true
    if (this.bodyDone) return false
    return this.isGivenUp || this.isChunked || this.declaredBytes > refusedBodyBytesMax
  }

  /** Writes the status line and all fields by one call of the native module. */
  private writeHead(status: number, joined: string): void {
    let text = this.statusLine(status)
    if (joined !== "") text += `\r\n${joined}`
    this.writeStatus(text)
  }

  /** Encoded already, unless there are fields of any status: those of the client's rate limit. */
  private writeKeptHead({ headers, status }: HttpReply, kept: KeptFields): void {
    const { bytes, text } = kept.after(this.statusLine(status))
    if (this.extraHeaders === "") this.native.writeStatus(bytes)
    else this.writeStatus(text)
    for (const [name, value] of headers) this.native.writeHeader(name, value)
  }

  private statusLine(status: number): string {
    const { guarded, open } = this.shared.statusLines
    return this.isGuarded ? guarded(status) : open(status)
  }

  private writeStatus(text: string): void {
    const { extraHeaders } = this
    this.native.writeStatus(extraHeaders === "" ? text : `${text}\r\n${extraHeaders}`)
  }

  /**
   * Ends an answer that has no body; `lengthBytes` is the length that its body would have, if that
   * is known. The native method gets neither the length nor the order to close: with a length it
   * waits for that many bytes, and drops the next request of the connection.
   */
  private endWithoutBody(lengthBytes: number | undefined): void {
    const native = this.native
    if (lengthBytes !== undefined) native.writeHeader("Content-Length", String(lengthBytes))
    this.announceClose()
    native.endWithoutBody()
  }

  /**
   * Ends the answer to a request whose body the server does not read, and the connection with it.
   * If the native server closed the connection while the client sends, the client's system would
   * discard the answer, and a proxy would report 502.
   */
  private endUnread(body: string | Uint8Array): void {
    this.announceClose()
    this.native.end(body)
  }

  /**
   * For answers behind which the native method must not close: a connection that must end reads
   * nothing more. The client closes it, or the native server after 10 s (RFC 9112, section 9.6).
   */
  private announceClose(): void {
    if (!this.closes()) return
    this.native.pause()
    this.native.writeHeader("Connection", "close")
  }

  /** Answers, unless the client is gone. Throws (a defect) for invalid header fields. */
  reply(reply: HttpReply): void {
    const { headers, kept, status } = reply
    if (kept !== undefined) checkFields(headers)
    const joined = kept === undefined ? joinHeaders(status, headers) : ""
    if (!this.begin()) return
    if (this.isLast || this.isTurnFull(reply.body)) this.afterPacket(() => this.send(reply, joined))
    else this.send(reply, joined)
  }

  /**
   * Whether the answer waits for the next turn. A packet may hold thousands of requests: answered
   * at once, all of their answers would be in memory before the client has read one. While one
   * waits, the parser ends the connection at the next request.
   */
  private isTurnFull(body: HttpReply["body"]): boolean {
    const { shared } = this
    const isFull = shared.turnBytes > turnBytesMax
    const bytes = body === undefined ? 0 : body.length
    const isFirst = shared.turnBytes === 0 && bytes > 0
    shared.turnBytes += bytes
    if (isFirst) {
      setImmediate(() => {
        shared.turnBytes = 0
      })
    }
    return isFull
  }

  private send(reply: HttpReply, joined: string): void {
    if (this.aborted) return this.settle()
    const { body = "", kept, status } = reply
    const native = this.native
    let isSent = true
    native.cork(() => {
      if (kept === undefined) this.writeHead(status, joined)
      else this.writeKeptHead(reply, kept)
      if (status === 204 || status === 304) return this.endWithoutBody(undefined)
      if (this.isHead) return this.endWithoutBody(Buffer.byteLength(body))
      const closes = this.closes()
      if (body.length > (closes ? lastAnswerBytesMax : 0)) isSent = this.tryEnd(body)
      else if (!closes) native.end(body)
      else if (this.bodyDone) native.end(body, true)
      else this.endUnread(body)
    })
    if (isSent) return this.settle()
    const whole = typeof body === "string" ? Buffer.from(body) : body
    sendRest(native, whole, this.hold(whole), {
      isLast: this.closes(),
      onAbort: (callback) => this.onAbort(callback),
      done: () => this.settle()
    })
  }

  /**
   * Whether the socket takes the whole answer. `native.end` would copy what it does not take,
   * behind all earlier answers that the client has not read.
   */
  private tryEnd(body: string | Uint8Array): boolean {
    this.announceClose()
    return this.native.tryEnd(body, Buffer.byteLength(body))[1]
  }

  /**
   * Answers with a body that it reads as fast as the client receives it. `lengthBytes` is the
   * Content-Length; without it the body is chunked. Resolves when the body is sent or aborted. If
   * the body fails or is too short, the connection is cut, so that the client notices. If it holds
   * a place, so is one whose client receives less than `placeReaderBytesPerSecondMin`.
   */
  async replyStream(
    status: number,
    headers: ReplyHeaders,
    lengthBytes: number | undefined,
    body: AnswerBytes,
    holdsPlace = false
  ): Promise<"sent" | "aborted"> {
    const joined = joinHeaders(status, headers)
    if (!this.begin()) return "aborted"
    if (this.isLast) await new Promise<void>((resolve) => this.afterPacket(resolve))
    const native = this.native
    if (this.aborted) {
      this.settle()
      return "aborted"
    }
    if (this.isHead || lengthBytes === 0) {
      native.cork(() => {
        this.writeHead(status, joined)
        this.endWithoutBody(lengthBytes)
      })
      this.settle()
      return "sent"
    }
    native.cork(() => {
      this.writeHead(status, joined)
      this.announceClose()
    })
    try {
      await sendStream(native, body, lengthBytes, {
        aborted: () => this.aborted,
        onAbort: (callback) => this.onAbort(callback),
        hold: () => this.hold(undefined, holdsPlace ? placePace : undefined)
      })
    } catch (error) {
      this.shared.onError(error)
    }
    const sent = !this.aborted
    this.settle()
    return sent ? "sent" : "aborted"
  }

  /** Begins to count what an answer holds that its client has not read. */
  private hold(body?: Uint8Array, pace?: ReadingPace): HeldAnswer {
    const { native, request, shared } = this
    return shared.unread.hold({
      network: shared.networkOf(request),
      body,
      pace,
      end: () => native.close(),
      keep: () => {
        native.pause()
        native.resume()
      }
    })
  }

  /** Answers with an event stream (text/event-stream); undefined if the client is gone. */
  events(headers: ReplyHeaders): EventStream | undefined {
    const joined = joinHeaders(200, [...eventHeaders, ...headers])
    if (!this.begin()) return undefined
    const { streams } = this.shared
    const stream = new EventStream(this.native, () => this.hold(), () => {
      streams.delete(stream)
      this.settle()
    })
    streams.add(stream)
    this.onAbort(() => stream.aborted())
    this.native.cork(() => {
      this.writeHead(200, joined)
      this.native.write(":\n\n")
    })
    if (this.shared.draining) stream.close()
    return stream
  }
}
