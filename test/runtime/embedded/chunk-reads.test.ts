/** Reads of the chunks of large blobs: few at once, into memory that their readers give back. */
import { randomBytes } from "node:crypto"
import { type FileHandle, open, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { ChunkReads } from "../../../runtime/embedded/blobs/chunk-reads.ts"
import { chunkReadsMax, embeddedBlobChunkBytes } from "../../../runtime/limits.ts"
import { newFolder } from "./folders.ts"

const chunks = 3 * chunkReadsMax
const bytes = randomBytes(chunks * embeddedBlobChunkBytes)

/** A file with the bytes, open until the test ends. */
const openBlob = async (): Promise<FileHandle> => {
  const path = join(await newFolder(), "blob")
  await writeFile(path, bytes)
  const file = await open(path)
  onTestFinished(() => file.close())
  return file
}

const expectedAt = (n: number): Buffer =>
  bytes.subarray(n * embeddedBlobChunkBytes, (n + 1) * embeddedBlobChunkBytes)

const readAt = (reads: ChunkReads, file: FileHandle, n: number): Promise<Buffer> =>
  reads.read(file, n * embeddedBlobChunkBytes, embeddedBlobChunkBytes)

describe("reads of chunks", () => {
  it("take memory for a few at once, whatever waits", async () => {
    const file = await openBlob()
    const reads = new ChunkReads()
    const before = process.memoryUsage().arrayBuffers
    const all = Array.from({ length: chunks }, (_, n) => readAt(reads, file, n))
    const taken = process.memoryUsage().arrayBuffers - before
    expect(taken).toBeLessThanOrEqual((chunkReadsMax + 1) * embeddedBlobChunkBytes)
    const found = await Promise.all(all)
    expect(found.every((chunk, n) => chunk.equals(expectedAt(n)))).toBe(true)
  })

  it("go on after one that failed", async () => {
    const file = await openBlob()
    const reads = new ChunkReads()
    const broken = { read: () => Promise.reject(new Error("broken")) } as unknown as FileHandle
    const failing = Array.from({ length: chunks }, () => reads.read(broken, 0, 1))
    const outcomes = await Promise.allSettled(failing)
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(chunks)
    expect((await readAt(reads, file, 1)).equals(expectedAt(1))).toBe(true)
  })

  it("use the memory again that is given back, once", async () => {
    const file = await openBlob()
    const reads = new ChunkReads()
    const first = await readAt(reads, file, 0)
    reads.recycle(first)
    reads.recycle(first)
    const [second, third] = [await readAt(reads, file, 1), await readAt(reads, file, 2)]
    expect(second.buffer).toBe(first.buffer)
    expect(third.buffer).not.toBe(first.buffer)
    // The memory has another chunk by now, which is not given back with the first one.
    reads.recycle(first)
    expect((await readAt(reads, file, 3)).buffer).not.toBe(second.buffer)
    expect(second.equals(expectedAt(1))).toBe(true)
    expect(third.equals(expectedAt(2))).toBe(true)
  })

  it("keep what is not given back, and take back nothing else", async () => {
    const file = await openBlob()
    const reads = new ChunkReads()
    const kept = await readAt(reads, file, 0)
    reads.recycle(Buffer.alloc(embeddedBlobChunkBytes))
    reads.recycle(kept.subarray(0, 1))
    const next = await readAt(reads, file, 1)
    expect(next.buffer).not.toBe(kept.buffer)
    expect(kept.equals(expectedAt(0))).toBe(true)
    const end = await reads.read(file, bytes.length, embeddedBlobChunkBytes)
    expect(end.length).toBe(0)
  })
})
