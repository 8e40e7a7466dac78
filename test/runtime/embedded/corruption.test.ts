/** A corrupted store is refused, or has all acknowledged writes; it never has a silent gap. */
import { Effect, Result } from "effect"
import { copyFile, cp, open, readdir, readFile, rm, stat, truncate } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { address } from "../../../runtime/actor/address.ts"
import { type EngineName, engineNames, inspect } from "../../../runtime/embedded/index.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { commitOf, itemsOf } from "../../suites/storage-probe.ts"
import { newFolder, openingFailure, withStore } from "./folders.ts"

const alice = address("mailbox", "alice")

const COMMITS = 40

const append = (n: number, value = `item ${n}`) =>
  Effect.flatMap(Storage, (storage) => storage.commit([commitOf({ append: [{ n, value }] })]))

const itemsIn = (folder: string) =>
  withStore(folder, Effect.flatMap(Storage, (storage) => storage.read(alice, 1, 1_000)))

const filesOf = async (folder: string, ending: string): Promise<Array<string>> => {
  const names = (await readdir(join(folder, "store"))).filter((name) => name.endsWith(ending))
  return names.sort().map((name) => join(folder, "store", name))
}

const logOf = async (folder: string): Promise<string> => {
  const sizes = await Promise.all((await filesOf(folder, ".log")).map(async (path) => ({
    path,
    size: (await stat(path)).size
  })))
  return sizes.sort((one, other) => other.size - one.size)[0]?.path ?? ""
}

/** Copies of a crashed store: one with `COMMITS` items, and one before the last of them. */
const crashed = async (engine: EngineName) => {
  const running = await newFolder(engine)
  const [before, after] = [await newFolder(), await newFolder()]
  await withStore(
    running,
    Effect.gen(function*() {
      for (let n = 1; n < COMMITS; n++) yield* append(n)
      yield* Effect.promise(() => cp(running, before, { recursive: true }))
      yield* append(COMMITS)
      yield* Effect.promise(() => cp(running, after, { recursive: true }))
    })
  )
  return { before, after }
}

const copyOf = async (folder: string): Promise<string> => {
  const copy = await newFolder()
  await cp(folder, copy, { recursive: true })
  return copy
}

const flip = async (path: string, at: number): Promise<void> => {
  const file = await open(path, "r+")
  const byte = Buffer.alloc(1)
  await file.read(byte, 0, 1, at)
  await file.write(Buffer.from([(byte[0] ?? 0) ^ 0x10]), 0, 1, at)
  await file.close()
}

/** The long form tries every byte; each try opens two stores. */
const long = process.env["TEST_LONG"] === "1"
const cutEvery = long ? 1 : 15
const flipEvery = long ? 23 : 199

describe.each(engineNames)("a corrupted store, %s", (engine) => {
  it("opens a crashed one whole", async () => {
    const { after } = await crashed(engine)
    expect(await itemsIn(after)).toEqual(itemsOf(1, COMMITS))
  })

  it("notices a log cut anywhere in its last record", async () => {
    const { after, before } = await crashed(engine)
    const log = await logOf(after)
    const start = (await stat(await logOf(before))).size
    const end = (await stat(log)).size
    expect(end - start).toBeGreaterThan(50)
    const whole = await readFile(log)
    for (let size = start; size < end; size += cutEvery) {
      const copy = await copyOf(after)
      await truncate(join(copy, "store", log.slice(log.lastIndexOf("/") + 1)), size)
      expect(await openingFailure(copy)).toMatchObject({
        _tag: "StorageCorrupted",
        detail:
          `the log was truncated or corrupted: it has ${COMMITS - 1} of ${COMMITS} acknowledged ` +
          "commits"
      })
      // The same cut, of a commit that was never acknowledged, is what a crash leaves.
      const unacknowledged = await copyOf(before)
      const path = join(unacknowledged, "store", log.slice(log.lastIndexOf("/") + 1))
      const file = await open(path, "r+")
      await file.write(whole, 0, size)
      await file.close()
      expect(await itemsIn(unacknowledged)).toEqual(itemsOf(1, COMMITS - 1))
      await Promise.all([copy, unacknowledged].map((one) => rm(one, { recursive: true })))
    }
  })

  it("notices a flipped bit anywhere in the log", async () => {
    const { after } = await crashed(engine)
    const log = await logOf(after)
    const { size } = await stat(log)
    let refused = 0
    for (let at = 0; at < size; at += flipEvery) {
      const copy = await copyOf(after)
      await flip(join(copy, "store", log.slice(log.lastIndexOf("/") + 1)), at)
      const failure = await openingFailure(copy)
      if (failure === undefined) expect(await itemsIn(copy)).toEqual(itemsOf(1, COMMITS))
      else expect(failure).toMatchObject({ _tag: "StorageCorrupted" })
      if (failure !== undefined) refused++
      // It stays refused, and `check` says so.
      if (failure !== undefined && at % 5 === 0) {
        expect(await openingFailure(copy)).toMatchObject({ _tag: "StorageCorrupted" })
        expect((await Effect.runPromise(inspect(copy))).faults).toHaveLength(1)
      }
      await rm(copy, { recursive: true })
    }
    expect(refused).toBeGreaterThan(size / flipEvery / 2)
  })

  it.each([".log", "CURRENT", "MANIFEST", "acknowledged", "all"])(
    "notices that %s is gone",
    async (what) => {
      const { after } = await crashed(engine)
      const names = (await readdir(join(after, "store"))).filter((name) =>
        what === ".log" ? name.endsWith(what) : name.startsWith(what)
      )
      for (const name of names) await rm(join(after, "store", name))
      if (what === "acknowledged") await rm(join(after, what))
      if (what === "all") await rm(join(after, "store"), { recursive: true })
      expect(await openingFailure(after)).toMatchObject({ _tag: "StorageCorrupted" })
    }
  )

  it("notices a table that is gone, cut, or flipped where it is read", async () => {
    const folder = await newFolder(engine)
    const value = "v".repeat(100_000)
    await withStore(
      folder,
      Effect.gen(function*() {
        for (let n = 1; n <= 400; n++) yield* append(n, `${n} ${value}`)
      })
    )
    // A busy machine may have left all of it in the log; the next start writes that into tables.
    await withStore(folder, Effect.void)
    const [table = ""] = await filesOf(folder, engine === "rocksdb" ? ".sst" : ".ldb")
    const name = table.slice(table.lastIndexOf("/") + 1)
    const gone = await copyOf(folder)
    await rm(join(gone, "store", name))
    expect(await openingFailure(gone)).toMatchObject({ _tag: "StorageCorrupted" })
    const cut = await copyOf(folder)
    await truncate(join(cut, "store", name), 50_000)
    expect(await openingFailure(cut)).toMatchObject({ _tag: "StorageCorrupted" })
    const flipped = await copyOf(folder)
    await flip(join(flipped, "store", name), 500_000)
    await expect(itemsIn(flipped)).rejects.toMatchObject({ _tag: "StorageCorrupted" })
    expect((await Effect.runPromise(inspect(flipped))).faults).not.toEqual([])
    expect(await openingFailure(folder)).toBeUndefined()
  })

  it("skips no unreadable block, however few rows are read", async () => {
    const folder = await newFolder(engine)
    // Blocks that Snappy can undo no more when a byte of them differs.
    const value = "v".repeat(3_000)
    const fill = (from: number, to: number) =>
      Effect.gen(function*() {
        for (let n = from; n <= to; n += 20) {
          const items = Array.from({ length: 20 }, (_, at) => ({ n: n + at, value }))
          yield* Effect.flatMap(Storage, (storage) => storage.commit([commitOf({ append: items })]))
        }
      })
    await withStore(folder, fill(1, 200))
    // What is in the log is put into a table when the store is opened again.
    await withStore(folder, Effect.void)
    const [table = ""] = await filesOf(folder, engine === "rocksdb" ? ".sst" : ".ldb")
    const { size } = await stat(table)
    const garble = async (from: number, to: number) => {
      const file = await open(table, "r+")
      const at = Math.floor(size * from)
      await file.write(Buffer.alloc(Math.floor(size * to) - at, 0xff), 0, undefined, at)
      await file.close()
    }
    const read = Effect.gen(function*() {
      const storage = yield* Storage
      const reads: Array<string> = []
      for (const from of [1, 40, 80, 100, 120, 160]) {
        const items = yield* Effect.result(storage.read(alice, from, 10))
        const numbers = Result.isSuccess(items) ? items.success.map(({ n }) => n) : []
        const isRight = numbers.length === 10 && numbers[0] === from
        reads.push(Result.isFailure(items) ? items.failure._tag : isRight ? "right" : "gap")
      }
      const loaded = yield* Effect.result(storage.load(alice))
      const head = Result.isSuccess(loaded) ? loaded.success.head : loaded.failure._tag
      return { reads, head }
    })
    // Opening checks the files; reads notice later corruption.
    const corrupted = Effect.andThen(Effect.promise(() => garble(0.3, 0.75)), read)
    const { head, reads } = await withStore(folder, corrupted)
    expect(reads).toContain("StorageCorrupted")
    expect(reads).not.toContain("gap")
    // Nor is the last item that can be read taken for the end of the log.
    expect(["StorageCorrupted", 200]).toContain(head)
  })

  it("takes one torn slot of the acknowledged count, not two", async () => {
    const { after } = await crashed(engine)
    const torn = await copyOf(after)
    await flip(join(torn, "acknowledged"), 9)
    expect(await itemsIn(torn)).toEqual(itemsOf(1, COMMITS))
    await flip(join(after, "acknowledged"), 9)
    await flip(join(after, "acknowledged"), 512 + 9)
    expect(await openingFailure(after)).toMatchObject({ _tag: "StorageCorrupted" })
  })
})

describe.each(engineNames)("inspect, %s", (engine) => {
  const bytes = async function*(length: number) {
    yield Buffer.alloc(length, 7)
  }

  it("counts what is there, and finds blobs that differ and left-overs", async () => {
    const folder = await newFolder(engine)
    await withStore(
      folder,
      Effect.gen(function*() {
        const [storage, blobs] = [yield* Storage, yield* Blobs]
        yield* storage.commit([
          commitOf({ state: "a", append: itemsOf(1, 5), head: 5, timer: 9 }),
          commitOf({ address: address("session", "s"), state: "s" })
        ])
        yield* blobs.put("small", bytes(100), 1_000)
        yield* blobs.put("large", bytes(100_000), 1_000_000)
      })
    )
    const sound = await Effect.runPromise(inspect(folder))
    expect(sound).toEqual({
      engine,
      counts: {
        commits: 4,
        actors: { mailbox: 1, session: 1 },
        logItems: 5,
        timers: 1,
        records: 0,
        blobs: 2,
        blobBytes: 100_100,
        garbageItems: 0,
        orphanFiles: 0
      },
      faults: []
    })
    const folders = await readdir(join(folder, "blobs"))
    const hex = folders.find((name) => name !== "tmp") ?? ""
    const [name = ""] = await readdir(join(folder, "blobs", hex))
    const file = join(folder, "blobs", hex, name)
    await copyFile(file, join(folder, "blobs", hex, "large.abc"))
    await copyFile(file, join(folder, "blobs", "tmp", "half"))
    await flip(file, 77_777)
    const { counts, faults } = await Effect.runPromise(inspect(folder))
    expect(counts.orphanFiles).toBe(2)
    expect(faults).toEqual(["blob large: its SHA-256 differs"])
    await truncate(file, 500)
    expect((await Effect.runPromise(inspect(folder))).faults).toEqual([
      "blob large: 500 bytes instead of 100000"
    ])
    // The next start removes what nothing names.
    await withStore(
      folder,
      Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 200)))
    )
    expect((await Effect.runPromise(inspect(folder))).counts.orphanFiles).toBe(0)
    await rm(file)
    expect((await Effect.runPromise(inspect(folder))).faults).toHaveLength(1)
  })

  it("says that there is no store", async () => {
    await expect(Effect.runPromise(inspect(await newFolder()))).rejects.toMatchObject({
      _tag: "StorageUnavailable"
    })
  })
})
