/**
 * Reads chunks of files, a few at once. A read takes one of the few threads of the process for
 * files, and its memory would be taken while it waits for one: a thousand clients that ask together
 * would take a thousand chunks. Chunks that are given back are read into again, since those of a
 * fast file would take a hundred megabytes before they are collected.
 */
import type { FileHandle } from "node:fs/promises"
import { chunkReadsMax, embeddedBlobChunkBytes } from "../../limits.ts"
import { Turns } from "../../turns.ts"

export class ChunkReads {
  private readonly turns = new Turns(chunkReadsMax)
  /** Memory of chunks that were given back. */
  private readonly free: Array<Buffer> = []
  /** Chunks that may be given back, once each. */
  private readonly lent = new WeakSet<Uint8Array>()

  /** At most `bytesMax` bytes of a file from `at` on; none at its end. */
  read(file: FileHandle, at: number, bytesMax: number): Promise<Buffer> {
    return this.turns.run(async () => {
      const memory = this.free.pop() ?? Buffer.allocUnsafeSlow(embeddedBlobChunkBytes)
      const { bytesRead } = await file.read(memory, 0, bytesMax, at)
      const chunk = memory.subarray(0, bytesRead)
      this.lent.add(chunk)
      return chunk
    })
  }

  /** Takes back a chunk that nothing refers to any more. */
  recycle(chunk: Uint8Array): void {
    if (this.lent.delete(chunk) && this.free.length < chunkReadsMax) {
      this.free.push(Buffer.from(chunk.buffer))
    }
  }
}
