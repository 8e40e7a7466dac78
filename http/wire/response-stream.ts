/** Sends a body in chunks, no faster than the client receives them. */
import { heldStreamBytes } from "../limits.ts"
import type { HeldAnswer } from "./answers/index.ts"
import type { NativeResponse } from "./native-response.ts"

interface Connection {
  readonly aborted: () => boolean
  readonly onAbort: (callback: () => void) => void
  /** Begins to count what waits for the client, which ends it without progress. */
  readonly hold: () => HeldAnswer
}

/** The bytes of an answer. */
export interface AnswerBytes extends AsyncIterable<Uint8Array> {
  /** Takes back a chunk whose bytes the native server has taken, or that is sent to nobody. */
  readonly recycle?: (chunk: Uint8Array) => void
}

/** The body has another length than announced; the connection was closed. */
export class BrokenBody extends Error {
  readonly _tag = "BrokenBody"
}

class Writer {
  private readonly native: NativeResponse
  private readonly connection: Connection
  private readonly lengthBytes: number | undefined
  private wake: (() => void) | undefined
  private sentBytes = 0
  private complete = false
  /** From the first time that the socket is full. */
  private held: HeldAnswer | undefined
  private creditedBytes = 0
  /** Of a chunked body: whether the native server had not sent all at the last write. */
  private isKeeping = false

  constructor(
    native: NativeResponse,
    connection: Connection,
    lengthBytes: number | undefined
  ) {
    this.native = native
    this.connection = connection
    this.lengthBytes = lengthBytes
    native.onWritable(() => {
      this.wake?.()
      return true
    })
    connection.onAbort(() => this.wake?.())
  }

  /** Waits until the socket accepts more bytes; the budget ends a client that stalls too long. */
  private async writable(): Promise<void> {
    if (this.connection.aborted()) return
    const writable = new Promise<void>((resolve) => {
      this.wake = resolve
    })
    this.held ??= this.hold()
    // The native server counts no bytes of a chunked body: it has taken all of them.
    const takenBytes = this.lengthBytes === undefined
      ? this.sentBytes
      : this.native.getWriteOffset()
    this.held.progress(takenBytes - this.creditedBytes)
    this.creditedBytes = takenBytes
    this.held.pause(false)
    await writable
    this.held.pause(true)
  }

  private hold(): HeldAnswer {
    const held = this.connection.hold()
    held.resize(heldStreamBytes)
    return held
  }

  release(): void {
    this.held?.release()
  }

  /** Writes a whole chunk; resolves when there is room for the next one. */
  async write(chunk: Uint8Array): Promise<void> {
    this.sentBytes += chunk.length
    if (this.lengthBytes === undefined) return this.writeChunked(chunk)
    if (this.sentBytes > this.lengthBytes) throw new BrokenBody("the body exceeds its length")
    const total = this.lengthBytes
    const start = this.sentBytes - chunk.length
    let rest = chunk
    while (!this.connection.aborted()) {
      const piece = rest
      let ok = false
      this.native.cork(() => {
        const [taken, done] = this.native.tryEnd(piece, total)
        ok = taken
        this.complete = done
      })
      if (ok || this.complete) return
      const offset = this.native.getWriteOffset()
      await this.writable()
      rest = chunk.subarray(offset - start)
    }
  }

  /**
   * The native server keeps what the socket does not take, and sends it with the next bytes only.
   * So single bytes find out whether it has sent all, before it gets more to keep.
   */
  private async writeChunked(chunk: Uint8Array): Promise<void> {
    let at = 0
    while (this.isKeeping && at < chunk.length && !this.connection.aborted()) {
      await this.put(chunk.subarray(at, at + 1))
      at += 1
    }
    if (at < chunk.length && !this.connection.aborted()) await this.put(chunk.subarray(at))
  }

  private async put(piece: Uint8Array): Promise<void> {
    this.native.cork(() => {
      this.isKeeping = !this.native.write(piece)
    })
    if (this.isKeeping) await this.writable()
  }

  end(): void {
    if (this.complete || this.connection.aborted()) return
    if (this.lengthBytes !== undefined) throw new BrokenBody("the body is shorter than its length")
    this.native.cork(() => this.native.end())
    this.complete = true
  }

  cut(): void {
    if (!this.complete && !this.connection.aborted()) this.native.close()
  }
}

/**
 * Sends the chunks of a body after the head was written. Returns early when the client leaves. If
 * the body fails, it closes the connection and fails with that error or with `BrokenBody`.
 */
export const sendStream = async (
  native: NativeResponse,
  body: AnswerBytes,
  lengthBytes: number | undefined,
  connection: Connection
): Promise<void> => {
  const writer = new Writer(native, connection, lengthBytes)
  try {
    for await (const chunk of body) {
      if (connection.aborted()) return
      if (chunk.length > 0) await writer.write(chunk)
      body.recycle?.(chunk)
      if (connection.aborted()) return
    }
    writer.end()
  } catch (error) {
    writer.cut()
    throw error
  } finally {
    writer.release()
  }
}
