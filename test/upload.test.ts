/** A body that is read more slowly than it arrives. */
import fc from "fast-check"
import { readdirSync } from "node:fs"
import { afterAll, expect, it } from "vitest"
import { overrunBytesMax } from "../http/limits.ts"
import { Spill, SpillFolder, Upload } from "../http/wire/uploads/index.ts"
import { cleanUp, temporaryFolder } from "./e2e/process.ts"

const highWaterBytes = 10

afterAll(cleanUp)

it("pauses the sender while the reader is behind, and from its end until the answer", async () => {
  const chunks = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(chunks, fc.nat(20), async (sizes, readAfter) => {
      const calls: Array<string> = []
      const upload = new Upload(1_000, highWaterBytes, {
        pause: () => calls.push("pause"),
        resume: () => calls.push("resume"),
        failed: () => calls.push("failed")
      }, new Spill(new SpillFolder(temporaryFolder())))
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

/** An upload of a client that sends on, although it was told to wait. */
const overrun = (path: string, filesBytesMax = 1_000_000_000) => {
  const calls: Array<string> = []
  const folder = new SpillFolder(path, filesBytesMax)
  const upload = new Upload(1_000_000_000, highWaterBytes, {
    pause: () => calls.push("pause"),
    resume: () => calls.push("resume"),
    failed: () => calls.push("failed")
  }, new Spill(folder))
  return { calls, folder, upload }
}

const pieceBytes = 512 * 1024

const pieces = 40

/** All pieces at once, each of its own byte. */
const deliver = (upload: Upload): void => {
  for (let n = 1; n <= pieces; n += 1) {
    upload.receive(new Uint8Array(pieceBytes).fill(n).buffer, n === pieces)
  }
}

it("keeps what a paused client sends in a file, and gives all of it to the reader", async () => {
  const path = temporaryFolder()
  const { calls, folder, upload } = overrun(path)
  deliver(upload)
  upload.complete()
  expect(upload.readableLength).toBeLessThanOrEqual(overrunBytesMax + 2 * pieceBytes)
  expect(folder.size).toBeGreaterThan((pieces - 5) * pieceBytes)
  // The file has no name: nothing is left after the process has ended, however it ends.
  expect(readdirSync(path)).toEqual([])
  let at = 0
  for await (const chunk of upload) {
    for (let byte = 0; byte < chunk.length; byte += 4096) {
      expect(chunk[byte]).toBe(1 + Math.floor((at + byte) / pieceBytes))
    }
    at += chunk.length
  }
  expect([at, folder.size, calls]).toEqual([pieces * pieceBytes, 0, ["pause"]])
})

it("lets its client go on when the file was read", async () => {
  const { calls, folder, upload } = overrun(temporaryFolder())
  for (let n = 1; n < 10; n += 1) upload.receive(new ArrayBuffer(pieceBytes), false)
  const reader = upload[Symbol.asyncIterator]()
  let read = 0
  while (!calls.includes("resume")) read += (await reader.next()).value.length
  expect([read, folder.size]).toEqual([9 * pieceBytes, 0])
  upload.receive(new ArrayBuffer(1), true)
  upload.complete()
  expect((await reader.next()).value.length).toBe(1)
  expect((await reader.next()).done).toBe(true)
})

it("drops the file when the upload ends early, or there is no room", () => {
  const { folder, upload } = overrun(temporaryFolder())
  deliver(upload)
  upload.destroy()
  expect(folder.size).toBe(0)
  const full = overrun(temporaryFolder(), 5 * pieceBytes)
  deliver(full.upload)
  expect([full.upload.fault?._tag, full.folder.size]).toEqual(["NoRoom", 0])
  // Without a folder they stay in memory, which the budget bounds.
  const nowhere = overrun("/nowhere/at/all")
  deliver(nowhere.upload)
  expect([nowhere.upload.readableLength, nowhere.folder.size]).toEqual([pieces * pieceBytes, 0])
})
