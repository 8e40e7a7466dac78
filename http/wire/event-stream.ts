/** Server-sent events (WHATWG HTML §9.2) with a bound on the bytes that wait for a slow reader. */
import { eventBufferBytesMax, readerStallMs } from "../limits.ts"
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
  private readonly listeners: Array<() => void> = []
  private waiting: (() => void) | undefined

  constructor(native: NativeResponse, ended: () => void) {
    this.native = native
    this.ended = ended
    native.onWritable(() => {
      this.pendingBytes = 0
      this.waiting?.()
      return true
    })
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
    this.pendingBytes += Buffer.byteLength(text)
    // One event may be larger than the bound: it alone does not close the stream.
    if (isFirst || this.pendingBytes <= eventBufferBytesMax) return true
    this.cut()
    return false
  }

  /**
   * Resolves when the socket accepts bytes again, or the stream has ended; disconnects a client
   * that reads nothing. One caller waits at a time.
   */
  async writable(): Promise<void> {
    if (this.pendingBytes === 0 || !this.isOpen) return
    const timer = setTimeout(() => this.cut(), readerStallMs)
    await new Promise<void>((resolve) => {
      this.waiting = resolve
    })
    clearTimeout(timer)
  }

  /** Closes the connection at once, for a reader that does not read. */
  private cut(): void {
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
    this.ended()
    this.waiting?.()
    for (const listener of this.listeners.splice(0)) listener()
  }
}
