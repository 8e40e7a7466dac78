/**
 * Reads chunks of files, a few at once. A read takes one of the few threads of the process for
 * files, and its memory would be taken while it waits for one: a thousand clients that ask together
 * would take a thousand chunks. Chunks that are given back are read into again, since those of a
 * fast file would take a hundred megabytes before they are collected.
 */
import type { FileHandle } from "node:fs/promises"
import { chunkReadsMax, embeddedBlobChunkBytes } from "../../limits.ts"

export class ChunkReads {
  private underWay = 0
  private readonly waiting: Array<() => void> = []
  /** Memory of chunks that were given back. */
  private readonly free: Array<Buffer> = []
  /** Memory of chunks that may be given back, once each. */
  private readonly lent = new WeakSet<ArrayBufferLike>()

  /** At most `bytesMax` bytes of a file from `at` on; none at its end. */
  async read(file: FileHandle, at: number, bytesMax: number): Promise<Buffer> {
    if (this.underWay < chunkReadsMax) this.underWay++
    else await new Promise<void>((resolve) => this.waiting.push(resolve))
    try {
      const memory = this.free.pop() ?? Buffer.allocUnsafeSlow(embeddedBlobChunkBytes)
      const { bytesRead } = await file.read(memory, 0, bytesMax, at)
      this.lent.add(memory.buffer)
      return memory.subarray(0, bytesRead)
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.underWay--
      // It takes over the place.
      else next()
    }
  }

  /** Takes back a chunk that nothing refers to any more. */
  recycle({ buffer }: Uint8Array): void {
    if (this.lent.delete(buffer) && this.free.length < chunkReadsMax) {
      this.free.push(Buffer.from(buffer))
    }
  }
}
