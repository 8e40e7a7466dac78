/** A body that is read more slowly than it arrives. */
import fc from "fast-check"
import { execFileSync } from "node:child_process"
import { readdirSync, readlinkSync } from "node:fs"
import { afterAll, expect, it, onTestFinished } from "vitest"
import { overrunBytesMax, spilledBytesMax, spilledMemoryBytesMax } from "../http/limits.ts"
import { streamError } from "../http/pipeline/request-input.ts"
import type { BodyFault } from "../http/wire/index.ts"
import { Spill, SpillFolder, type SpillSettings, Upload } from "../http/wire/uploads/index.ts"
import { cleanUp, temporaryFolder } from "./e2e/process.ts"

const highWaterBytes = 10

const network = "192.0.2.0/24"

afterAll(cleanUp)

it("pauses the sender while the reader is behind, and from its end until the answer", async () => {
  const chunks = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(chunks, fc.nat(20), async (sizes, readAfter) => {
      const calls: Array<string> = []
      const upload = new Upload(1_000, highWaterBytes, {
        pause: () => calls.push("pause"),
        resume: () => calls.push("resume"),
        failed: () => calls.push("failed"),
        cut: () => calls.push("cut")
      }, new Spill(new SpillFolder({ path: temporaryFolder() }), () => network))
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
const overrun = (path: string, settings: Partial<SpillSettings> = {}) =>
  overrunIn(new SpillFolder({ path, bytesMax: 1_000_000_000, ...settings }))

const overrunIn = (folder: SpillFolder, networkOf = () => network) => {
  const calls: Array<string> = []
  const upload = new Upload(1_000_000_000, highWaterBytes, {
    pause: () => calls.push("pause"),
    resume: () => calls.push("resume"),
    failed: () => calls.push("failed"),
    cut: () => calls.push("cut")
  }, new Spill(folder, networkOf))
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
  const full = overrun(temporaryFolder(), { bytesMax: 10 * pieceBytes })
  deliver(full.upload)
  const shortage = { of: network, bytesMax: 5 * pieceBytes, isOfFiles: true }
  expect(full.upload.fault).toEqual({ _tag: "NoRoom", shortage })
  expect(full.folder.size).toBe(0)
  // Without a folder they stay in memory, which the budget bounds.
  const nowhere = overrun("/nowhere/at/all")
  deliver(nowhere.upload)
  expect([nowhere.upload.readableLength, nowhere.folder.size]).toEqual([pieces * pieceBytes, 0])
})

it("leaves half of the room in files to other networks", () => {
  const bytesMax = 20 * pieceBytes
  const folder = new SpillFolder({ path: temporaryFolder(), bytesMax })
  const open = (networkOf: () => string, count: number) => {
    const { upload } = overrunIn(folder, networkOf)
    for (let n = 1; n <= count; n += 1) upload.receive(new ArrayBuffer(pieceBytes), false)
    return upload
  }
  const first = open(() => network, 12)
  const second = open(() => network, 12)
  expect([first.fault, folder.size]).toEqual([undefined, 9 * pieceBytes])
  expect(second.fault).toMatchObject({ _tag: "NoRoom", shortage: { of: network } })
  const other = open(() => "198.51.100.0/24", 12)
  expect([other.fault, folder.size]).toEqual([undefined, 18 * pieceBytes])
  const third = open(() => "203.0.113.0/24", 12)
  expect(third.fault).toMatchObject({ _tag: "NoRoom", shortage: { of: "the service", bytesMax } })
  for (const upload of [first, second, other, third]) upload.destroy()
  expect(folder.size).toBe(0)
  expect(open(() => network, 12).fault).toBe(undefined)
})

it("has less room in files where the folder is memory, or is none", () => {
  // Of another kind of file system.
  expect(new SpillFolder({ path: "/proc" }).bytesMax).toBe(spilledBytesMax)
  const folder = temporaryFolder()
  expect(new SpillFolder({ path: `${folder}/nowhere` }).bytesMax).toBe(spilledMemoryBytesMax)
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder])
  onTestFinished(() => void execFileSync("umount", ["-l", folder]))
  expect(new SpillFolder({ path: folder }).bytesMax).toBe(spilledMemoryBytesMax)
})

it("writes nothing while the disk is below its floor", () => {
  let isDiskLow = true
  const path = temporaryFolder()
  const { folder, upload } = overrun(path, { isDiskLow: () => isDiskLow })
  for (let n = 1; n <= 9; n += 1) upload.receive(new ArrayBuffer(pieceBytes), false)
  // As far as the budget goes: it has none here.
  expect([folder.size, upload.readableLength]).toEqual([0, 9 * pieceBytes])
  isDiskLow = false
  upload.receive(new ArrayBuffer(pieceBytes), false)
  expect([folder.size, upload.fault]).toEqual([pieceBytes, undefined])
  isDiskLow = true
  upload.receive(new ArrayBuffer(pieceBytes), false)
  expect([folder.size, upload.fault]).toEqual([0, { _tag: "FileFailed", why: "DiskLow" }])
})

it("says that the disk refused, which is no limit of the service", async () => {
  const path = temporaryFolder()
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", path])
  onTestFinished(() => void execFileSync("umount", ["-l", path]))
  const { calls, folder, upload } = overrun(path)
  deliver(upload)
  expect(upload.fault).toEqual({ _tag: "FileFailed", why: "Unwritable" })
  expect([folder.size, calls]).toEqual([0, ["pause", "failed"]])
})

it("says which file or which limit failed, and what to do", () => {
  const details = new Map<string, string>()
  const shortage = { of: network, bytesMax: 7, isOfFiles: true }
  const faults: ReadonlyArray<readonly [string, BodyFault]> = [
    ["DiskLow", { _tag: "FileFailed", why: "DiskLow" }],
    ["Unwritable", { _tag: "FileFailed", why: "Unwritable" }],
    ["Unreadable", { _tag: "FileFailed", why: "Unreadable" }],
    ["NoRoom", { _tag: "NoRoom", shortage }]
  ]
  for (const [name, fault] of faults) {
    const { changedNothing, headers, problem } = streamError(fault, "content")
    expect([problem.status, changedNothing, headers]).toEqual([503, true, [["Retry-After", "2"]]])
    expect(problem.detail).toContain("nothing was stored, send ")
    details.set(name, problem.detail ?? "")
  }
  expect(details.get("DiskLow")).toContain("less free space than DISK_FREE_MIN")
  expect(details.get("Unwritable")).toContain("the disk of DATA_DIR refused")
  expect(details.get("Unreadable")).toContain("the disk of DATA_DIR did not return")
  expect(details.get("NoRoom")).toContain(`the uploads of the clients of ${network} that wait in`)
  expect(details.get("NoRoom")).toContain(" 7 bytes, which is the limit")
})

/** Files that this process has open in a folder. */
const openFilesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync("/proc/self/fd").flatMap((file) => {
    try {
      return [readlinkSync(`/proc/self/fd/${file}`)]
    } catch {
      // The descriptor with which the folder was read.
      return []
    }
  }).filter((target) => target.startsWith(folder))

it("leaves no file open that it cannot make nameless, and does not try again", () => {
  const path = temporaryFolder()
  const removeName = () => {
    throw new Error("not permitted")
  }
  const { folder, upload } = overrun(path, { removeName })
  deliver(upload)
  expect([folder.size, upload.readableLength]).toEqual([0, pieces * pieceBytes])
  expect([readdirSync(path).length, openFilesIn(path)]).toEqual([1, []])
})

it("cuts a client that sends on for too long in one turn of the event loop", async () => {
  const turn = { bytesMax: 10 * pieceBytes, ms: 0 }
  const { calls, folder, upload } = overrun(temporaryFolder(), { turn })
  const send = (count: number, isLast = false) => {
    for (let n = 1; n <= count; n += 1) upload.receive(new ArrayBuffer(pieceBytes), isLast)
  }
  send(10)
  await new Promise((resolve) => void setImmediate(resolve))
  send(10)
  expect(calls).toEqual(["pause"])
  send(1)
  expect(calls).toEqual(["pause", "cut"])
  // What was given up is not written, but read from the socket.
  upload.destroy()
  await new Promise((resolve) => void setImmediate(resolve))
  send(11)
  expect([calls, folder.size]).toEqual([["pause", "cut", "cut"], 0])
})

it("cuts nobody who is complete, or whose bytes took no time", () => {
  const settings = { turn: { bytesMax: 2 * pieceBytes, ms: 0 } }
  const complete = overrun(temporaryFolder(), settings)
  for (let n = 1; n <= 3; n += 1) complete.upload.receive(new ArrayBuffer(pieceBytes), n === 3)
  expect(complete.calls).toEqual(["pause"])
  const fast = overrun(temporaryFolder(), { turn: { bytesMax: 1, ms: 3_600_000 } })
  deliver(fast.upload)
  expect(fast.calls).toEqual(["pause"])
})
