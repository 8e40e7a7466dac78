/** Streamed answers and the pace of their readers, above a native response of the test. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { answerCreditMsMax, placeReaderBytesPerSecondMin,
  readerStallMs } from "../../http/limits.ts"
import { placePace, type ReadingPace, UnreadBudget } from "../../http/wire/answers/index.ts"
import type { NativeResponse } from "../../http/wire/native-response.ts"
import { sendStream } from "../../http/wire/response-stream.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const chunkBytes = 48 * 1024

/** A socket whose client gets a chunk `delayMs` after it was written, and single bytes at once. */
class SlowSocket {
  isCut = false
  writtenBytes = 0
  /** Whether the client has received everything. */
  private isEmpty = true
  readonly native: NativeResponse
  private readonly delayMs: number
  private writable: () => void = () => {}
  private leave: () => void = () => {}

  constructor(delayMs: number) {
    this.delayMs = delayMs
    const part: Partial<NativeResponse> = {
      write: (chunk) => {
        this.writtenBytes += chunk.length
        if (this.isEmpty && chunk.length === 1) return true
        if (this.isEmpty) {
          setTimeout(() => {
            this.isEmpty = true
            this.writable()
          }, this.delayMs)
        }
        this.isEmpty = false
        return false
      },
      end: () => undefined,
      // As the native server, for a chunked body.
      getWriteOffset: () => 0,
      cork: (write) => write(),
      onWritable: (handler) => {
        this.writable = () => void handler(0)
      },
      close: () => {
        this.isCut = true
        this.leave()
      }
    }
    // A chunked body uses nothing else of a response.
    this.native = part as NativeResponse
  }

  /** Sends chunks without end until the client is cut, or it has received so many. */
  async send(chunksMax: number, pace?: ReadingPace): Promise<boolean> {
    let hasEnded = false
    const budget = new UnreadBudget()
    async function* chunks() {
      try {
        for (let at = 0; at < chunksMax; at++) yield Buffer.alloc(chunkBytes)
      } finally {
        hasEnded = true
      }
    }
    const connection = {
      aborted: () => this.isCut,
      onAbort: (callback: () => void) => {
        this.leave = callback
      },
      hold: () =>
        budget.hold({ network: "a", pace, end: () => this.native.close(), keep: () => undefined })
    }
    const sent = sendStream(this.native, chunks(), undefined, connection)
    await vi.runAllTimersAsync()
    await sent
    return hasEnded
  }
}

/** How long a chunk takes at the least rate. */
const chunkMs = chunkBytes * 1000 / placeReaderBytesPerSecondMin

describe("a reader of an answer that holds a place", () => {
  it("is cut when it receives just enough not to stall, and leaves its place", async () => {
    const socket = new SlowSocket(readerStallMs / 2)
    expect(await socket.send(1_000, placePace)).toBe(true)
    expect(socket.isCut).toBe(true)
    expect(socket.writtenBytes).toBeLessThanOrEqual(3 * chunkBytes)
  })

  it("is cut at last when it is a little too slow", async () => {
    const socket = new SlowSocket(chunkMs * 1.1)
    expect(await socket.send(1_000, placePace)).toBe(true)
    expect(socket.isCut).toBe(true)
  })

  it("gets all of it at the least rate", async () => {
    const socket = new SlowSocket(chunkMs)
    expect(await socket.send(1_000, placePace)).toBe(true)
    expect([socket.isCut, socket.writtenBytes]).toEqual([false, 1_000 * chunkBytes])
  })
})

describe("a reader of another answer", () => {
  it("may receive more slowly", async () => {
    const socket = new SlowSocket(readerStallMs - 1)
    expect(await socket.send(100)).toBe(true)
    expect([socket.isCut, socket.writtenBytes]).toEqual([false, 100 * chunkBytes])
  })

  it("is cut when it stalls", async () => {
    const socket = new SlowSocket(answerCreditMsMax + readerStallMs)
    expect(await socket.send(100)).toBe(true)
    expect([socket.isCut, socket.writtenBytes]).toEqual([true, chunkBytes])
  })
})
