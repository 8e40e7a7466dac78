/** A body that is read more slowly than it arrives. */
import fc from "fast-check"
import { expect, it } from "vitest"
import { Upload } from "../http/wire/upload.ts"

const highWaterBytes = 10

it("pauses the sender while the reader is behind, and from its end until the answer", async () => {
  const chunks = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(chunks, fc.nat(20), async (sizes, readAfter) => {
      const calls: Array<string> = []
      const upload = new Upload(1_000, highWaterBytes, {
        pause: () => calls.push("pause"),
        resume: () => calls.push("resume"),
        failed: () => calls.push("failed")
      })
      const reader = upload[Symbol.asyncIterator]()
      let queued = 0
      let read = 0
      const readOne = async () => {
        const { value } = await reader.next()
        const length = value?.length ?? 0
        queued -= length
        read += length
      }
      for (const [at, size] of sizes.entries()) {
        const isLast = at === sizes.length - 1
        upload.receive(new ArrayBuffer(size), isLast)
        if (isLast) upload.complete()
        queued += size
        if (!isLast && queued >= highWaterBytes) expect(calls.at(-1)).toBe("pause")
        if (!isLast && at >= readAfter && queued > 0) await readOne()
      }
      // The connection's own time limit begins again when it goes on.
      const atEnd = calls.length
      for await (const { length } of { [Symbol.asyncIterator]: () => reader }) read += length
      expect(calls.slice(atEnd)).toEqual([])
      upload.release()
      upload.release()
      expect(calls).toEqual(calls.map((_, at) => at % 2 === 0 ? "pause" : "resume"))
      expect(calls.length % 2).toBe(0)
      expect(read).toBe(sizes.reduce((sum, size) => sum + size, 0))
    })
  )
})
