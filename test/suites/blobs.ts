/** The contract of the blob port (`runtime/ports/blobs.ts`), run against each backend. */
import { createHash, randomBytes } from "node:crypto"
import { Effect, Fiber } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { BlobsApi, ByteRange } from "../../runtime/ports/blobs.ts"
import type { Fresh, Harness } from "./harness.ts"
import { run } from "./storage-probe.ts"

const MIB = 1024 * 1024

/** The bytes in chunks of an odd size. */
async function* pieces(bytes: Uint8Array, size = 10_007): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function* failing(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield* pieces(bytes)
  throw new Error("connection reset")
}

const collect = async (source: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Array<Uint8Array> = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const digestOf = (bytes: Uint8Array): string =>
  createHash("sha256").update(bytes).digest("base64url")

export const blobsSuite = (name: string, fresh: Fresh<BlobsApi>): void => {
  describe(`blobs: ${name}`, () => {
    let harness: Harness<BlobsApi>
    let blobs: BlobsApi
    beforeEach(async () => {
      harness = await fresh()
      blobs = harness.api
    })
    afterEach(() => harness.close())

    const put = (id: string, bytes: Uint8Array, bytesMax = 10 * MIB) =>
      run(blobs.put(id, pieces(bytes), bytesMax))
    const get = async (id: string, range?: ByteRange) => collect(await run(blobs.open(id, range)))
    const failure = (effect: Effect.Effect<unknown, unknown>) => run(Effect.flip(effect))

    const sizes = [0, 1, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 3 * MIB + 17]
    it.each(sizes)("returns %i bytes after a restart", async (size) => {
      const bytes = randomBytes(size)
      const info = { lengthBytes: size, digest: digestOf(bytes) }
      expect(await put("one", bytes)).toEqual(info)
      expect(await run(blobs.info("one"))).toEqual(info)
      expect((await get("one")).equals(bytes)).toBe(true)
      harness = await harness.reopen()
      blobs = harness.api
      expect(await run(blobs.info("one"))).toEqual(info)
      expect((await get("one")).equals(bytes)).toBe(true)
    })
    it.each([1_000, MIB])("reads ranges of %i bytes", async (size) => {
      const bytes = randomBytes(size)
      await put("one", bytes)
      const ranges = [[0, 0], [0, size - 1], [1, 1], [size - 1, size - 1], [300, 700]] as const
      for (const [start, end] of ranges) {
        const part = await get("one", { start, end })
        expect(part.equals(bytes.subarray(start, end + 1))).toBe(true)
      }
    })
    it("reports a missing blob", async () => {
      expect(await run(blobs.info("none"))).toBeUndefined()
      expect(await failure(blobs.open("none"))).toMatchObject({ _tag: "BlobMissing", id: "none" })
      await run(blobs.remove("none"))
    })
    it("replaces blobs as a whole, small by large and large by small", async () => {
      for (const size of [10, MIB, 2 * MIB, 20, 30]) {
        const bytes = randomBytes(size)
        await put("one", bytes)
        expect((await get("one")).equals(bytes)).toBe(true)
      }
    })
    it.each([100, MIB])(
      "stores nothing of a source that fails after %i bytes",
      async (size) => {
        const failed = await failure(blobs.put("one", failing(randomBytes(size)), 10 * MIB))
        expect(failed).toMatchObject({ _tag: "BlobAborted" })
        expect(await run(blobs.info("one"))).toBeUndefined()
        const stored = randomBytes(size)
        await put("one", stored)
        await failure(blobs.put("one", failing(randomBytes(size)), 10 * MIB))
        expect((await get("one")).equals(stored)).toBe(true)
      }
    )
    it.each([100, MIB])("rejects more than %i bytes at that limit", async (limit) => {
      expect(await failure(blobs.put("one", pieces(randomBytes(limit + 1)), limit))).toMatchObject({
        _tag: "BlobTooLarge",
        bytesMax: limit
      })
      expect(await run(blobs.info("one"))).toBeUndefined()
      await put("one", randomBytes(limit), limit)
    })
    it("stores nothing when the writer is interrupted", async () => {
      const endless = async function*() {
        yield randomBytes(MIB)
        await new Promise(() => {})
      }
      const fiber = Effect.runFork(blobs.put("one", endless(), 10 * MIB))
      await new Promise((resolve) => setTimeout(resolve, 30))
      await run(Fiber.interrupt(fiber))
      expect(await run(blobs.info("one"))).toBeUndefined()
    })
    it.each([1_000, 2 * MIB])(
      "reads %i bytes to the end after a removal",
      async (size) => {
        const bytes = randomBytes(size)
        await put("one", bytes)
        const reading = await run(blobs.open("one"))
        await run(blobs.remove("one"))
        expect((await collect(reading)).equals(bytes)).toBe(true)
        expect(await failure(blobs.open("one"))).toMatchObject({ _tag: "BlobMissing" })
        expect(await run(blobs.info("one"))).toBeUndefined()
      }
    )
    it("lets a reader stop early", async () => {
      await put("one", randomBytes(2 * MIB))
      for await (const chunk of await run(blobs.open("one"))) {
        expect(chunk.length).toBeGreaterThan(0)
        break
      }
    })
    it("orders concurrent writers of one id", async () => {
      const contents = Array.from({ length: 12 }, (_, at) => randomBytes(at % 2 === 0 ? 50 : MIB))
      await Promise.all(contents.map((bytes) => put("one", bytes)))
      const stored = await get("one")
      expect(contents.some((bytes) => bytes.equals(stored))).toBe(true)
      expect((await run(blobs.info("one")))?.digest).toBe(digestOf(stored))
    })
    it("has settled nothing that was just stored", async () => {
      await put("one", randomBytes(10))
      expect(await run(blobs.scanSettled(undefined, 10))).toEqual([])
      expect(await run(blobs.scanSettled("o", 10))).toEqual([])
    })
    it("lists ids page by page", async () => {
      const ids = ["a", "B", "a=1", "a-1", "_", "x".repeat(200)]
      for (const [at, id] of ids.entries()) await put(id, randomBytes(at % 2 === 0 ? 5 : MIB))
      const sorted = [...ids].sort()
      expect(await run(blobs.scan(undefined, 100))).toEqual(sorted)
      expect(await run(blobs.scan(undefined, 2))).toEqual(sorted.slice(0, 2))
      expect(await run(blobs.scan(sorted[1], 3))).toEqual(sorted.slice(2, 5))
      expect(await run(blobs.scan(sorted.at(-1), 3))).toEqual([])
      expect(await run(blobs.scan(undefined, 0))).toEqual([])
    })
  })
}
