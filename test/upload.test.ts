/** A body that is read more slowly than it comes. */
import fc from "fast-check"
import { expect, it } from "vitest"
import { Upload } from "../http/wire/upload.ts"

const highWaterBytes = 10

it("holds the sender while the reader is behind, and from its end until the answer", async () => {
  const chunks = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(chunks, fc.nat(20), async (sizes, readAfter) => {
      const said: Array<string> = []
      const upload = new Upload(1_000, highWaterBytes, {
        pause: () => said.push("pause"),
        resume: () => said.push("resume")
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
        upload.push(new ArrayBuffer(size), isLast)
        queued += size
        if (!isLast && queued >= highWaterBytes) expect(said.at(-1)).toBe("pause")
        if (!isLast && at >= readAfter && queued > 0) await readOne()
      }
      // The connection's own time limit begins again when it goes on.
      const atEnd = said.length
      for await (const { length } of { [Symbol.asyncIterator]: () => reader }) read += length
      expect(said.slice(atEnd)).toEqual([])
      upload.release()
      upload.release()
      expect(said).toEqual(said.map((_, at) => at % 2 === 0 ? "pause" : "resume"))
      expect(said.length % 2).toBe(0)
      expect(read).toBe(sizes.reduce((sum, size) => sum + size, 0))
    })
  )
})
