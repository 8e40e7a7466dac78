/** Sends a body in chunks, no faster than the client receives them. */
import { readerStallMs } from "../limits.ts"
import type { NativeResponse } from "./native-response.ts"

interface Connection {
  readonly aborted: () => boolean
  readonly onAbort: (callback: () => void) => void
}

/** The body has another length than announced; the connection was closed. */
export class BrokenBody extends Error {
  readonly _tag = "BrokenBody"
}

/**
 * How long a reader may keep the service waiting: `readerStallMs`, from which its waits are taken,
 * and to which what it receives is added, at `bytesPerSecondMin`. At a rate of 0 each wait may be
 * as long.
 */
class ReaderPace {
  private readonly bytesPerSecondMin: number
  private leftMs = readerStallMs

  constructor(bytesPerSecondMin: number) {
    this.bytesPerSecondMin = bytesPerSecondMin
  }

  get waitMaxMs(): number {
    return this.leftMs
  }

  count(waitedMs: number, bytes: number): void {
    if (this.bytesPerSecondMin === 0) return
    const regainedMs = bytes * 1000 / this.bytesPerSecondMin
    this.leftMs = Math.min(readerStallMs, Math.max(0, this.leftMs - waitedMs) + regainedMs)
  }
}

class Writer {
  private readonly native: NativeResponse
  private readonly connection: Connection
  private readonly lengthBytes: number | undefined
  private readonly pace: ReaderPace
  private wake: (() => void) | undefined
  private sentBytes = 0
  private complete = false

  constructor(
    native: NativeResponse,
    connection: Connection,
    lengthBytes: number | undefined,
    pace: ReaderPace
  ) {
    this.pace = pace
    this.native = native
    this.connection = connection
    this.lengthBytes = lengthBytes
    native.onWritable(() => {
      this.wake?.()
      return true
    })
    connection.onAbort(() => this.wake?.())
  }

  /**
   * Waits until the socket accepts more bytes, after it has taken `bytes`; disconnects a client
   * that stalls too long.
   */
  private async writable(bytes: number): Promise<void> {
    if (this.connection.aborted()) return
    const timer = setTimeout(() => this.native.close(), this.pace.waitMaxMs)
    const sinceMs = performance.now()
    await new Promise<void>((resolve) => {
      this.wake = resolve
    })
    clearTimeout(timer)
    this.pace.count(performance.now() - sinceMs, bytes)
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
      if (ok || this.complete) return this.pace.count(0, piece.length)
      const offset = this.native.getWriteOffset()
      await this.writable(offset - start - (chunk.length - rest.length))
      rest = chunk.subarray(offset - start)
    }
  }

  private async writeChunked(chunk: Uint8Array): Promise<void> {
    let ok = true
    this.native.cork(() => {
      ok = this.native.write(chunk)
    })
    if (ok) this.pace.count(0, chunk.length)
    else await this.writable(chunk.length)
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
 * the body fails, it closes the connection and fails with that error or with `BrokenBody`. A client
 * that receives less than `bytesPerSecondMin` is disconnected, however it spreads them.
 */
export const sendStream = async (
  native: NativeResponse,
  body: AsyncIterable<Uint8Array>,
  lengthBytes: number | undefined,
  connection: Connection,
  bytesPerSecondMin = 0
): Promise<void> => {
  const pace = new ReaderPace(bytesPerSecondMin)
  const writer = new Writer(native, connection, lengthBytes, pace)
  try {
    for await (const chunk of body) {
      if (connection.aborted()) return
      if (chunk.length > 0) await writer.write(chunk)
      if (connection.aborted()) return
    }
    writer.end()
  } catch (error) {
    writer.cut()
    throw error
  }
}
