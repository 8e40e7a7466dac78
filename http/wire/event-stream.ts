/** Server-sent events (WHATWG HTML §9.2) with a bound on the bytes that wait for a slow reader. */
import { answerBytesPerSecondMin, eventBufferBytesMax, readerStallMs } from "../limits.ts"
import type { HeldAnswer } from "./answers/index.ts"
import type { NativeResponse } from "./native-response.ts"

/** The text of one event. Each line of `data` becomes a `data` field; other fields are one line. */
export const eventText = (event: {
  readonly data: string
  readonly id?: string
  readonly event?: string
}): string => {
  let text = ""
  if (event.event !== undefined) text += `event: ${event.event.replace(/[\r\n]/g, " ")}\n`
  if (event.id !== undefined) text += `id: ${event.id.replace(/[\r\n\0]/g, "")}\n`
  return `${text}data: ${event.data.replace(/\r\n?|\n/g, "\ndata: ")}\n\n`
}

/** One open event stream. */
export class EventStream {
  private readonly native: NativeResponse
  private readonly ended: () => void
  private isOpen = true
  private pendingBytes = 0
  private readonly hold: () => HeldAnswer
  /** While events wait in memory: the budget ends a client that reads nothing. */
  private held: HeldAnswer | undefined
  private readonly listeners: Array<() => void> = []
  private waiting: (() => void) | undefined

  /** `hold` begins to count what waits for the client. */
  constructor(native: NativeResponse, hold: () => HeldAnswer, ended: () => void) {
    this.native = native
    this.hold = hold
    this.ended = ended
    native.onWritable(() => {
      this.flush()
      return true
    })
  }

  /** Sends what waits. The native server does so with the next bytes only: those of a comment. */
  private flush(): void {
    if (!this.isOpen) return
    let flowing = false
    this.native.cork(() => {
      flowing = this.native.write(":\n")
    })
    // How much the client has read is not known, but it reads.
    if (!flowing) return this.wait(0).progress(answerBytesPerSecondMin * readerStallMs / 1000)
    this.release()
    this.waiting?.()
  }

  /** So many bytes more wait for the client. */
  private wait(bytes: number): HeldAnswer {
    this.pendingBytes += bytes
    this.held ??= this.hold()
    this.held.resize(this.pendingBytes)
    return this.held
  }

  private release(): void {
    this.pendingBytes = 0
    this.held?.release()
    this.held = undefined
  }

  get open(): boolean {
    return this.isOpen
  }

  /**
   * Sends the text of an event. Returns `false` if the stream is closed. It closes a stream whose
   * reader has more than the bound unread; the reader resumes by Last-Event-ID.
   */
  send(text: string): boolean {
    if (!this.isOpen) return false
    let flowing = true
    this.native.cork(() => {
      flowing = this.native.write(text)
    })
    if (flowing) return true
    const isFirst = this.pendingBytes === 0
    this.wait(Buffer.byteLength(text))
    // One event may be larger than the bound: it alone does not close the stream.
    if (isFirst || this.pendingBytes <= eventBufferBytesMax) return this.isOpen
    this.cut()
    return false
  }

  /** Whether nothing waits in memory for the client. */
  get isFlowing(): boolean {
    return this.held === undefined
  }

  /**
   * Resolves when nothing waits any more, the stream has ended, or the time is over. One caller
   * waits at a time.
   */
  async writable(atMostMs: number): Promise<void> {
    if (this.isFlowing || !this.isOpen) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, atMostMs)
      this.waiting = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Closes the connection at once, for a reader that does not read, or may not. */
  cut(): void {
    if (!this.isOpen) return
    this.native.close()
    this.aborted()
  }

  /** Ends the chunked body, then the stream. */
  close(): void {
    if (!this.isOpen) return
    // Not with `closeConnection`: the field would be written into the chunked body.
    this.native.cork(() => this.native.end())
    this.aborted()
  }

  /** Calls back once when the stream has ended, by either side. */
  onClose(callback: () => void): void {
    if (this.isOpen) this.listeners.push(callback)
    else callback()
  }

  /** The connection is gone; called by the exchange. */
  aborted(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.release()
    this.ended()
    this.waiting?.()
    for (const listener of this.listeners.splice(0)) listener()
  }
}
