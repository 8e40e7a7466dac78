/** The choice of the database of a folder, and the checks of LevelDB's files. */
import { Effect } from "effect"
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { address } from "../../../runtime/actor/address.ts"
import { chooseEngine, engineOf } from "../../../runtime/embedded/engine/engine-choice.ts"
import { logGap, tableFault } from "../../../runtime/embedded/engine/leveldb-files.ts"
import { crc32c } from "../../../runtime/embedded/engine/log-format.ts"
import { inspect } from "../../../runtime/embedded/index.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { commitOf, itemsOf } from "../../suites/storage-probe.ts"
import { newFolder, openingFailure, withStore } from "./folders.ts"

describe("the database of a folder", () => {
  it("is chosen at the first start", async () => {
    const folder = await newFolder()
    expect(engineOf(folder)).toBeUndefined()
    await withStore(folder, Effect.void, "leveldb")
    expect(await readFile(join(folder, "engine"), "utf8")).toBe("leveldb\n")
    expect(await chooseEngine(folder, undefined)).toBe("leveldb")
    await withStore(folder, Effect.void)
    expect(await openingFailure(folder, "rocksdb")).toMatchObject({
      _tag: "EngineDiffers",
      path: folder,
      found: "leveldb",
      wanted: "rocksdb"
    })
    await expect(Effect.runPromise(inspect(folder, "rocksdb"))).rejects.toMatchObject({
      _tag: "EngineDiffers"
    })
    expect(await readdir(folder)).not.toContain("engine.tmp")
  })

  it("is RocksDB for a store without the file `engine`, which the next start writes", async () => {
    const folder = await newFolder()
    await withStore(folder, Effect.void, "rocksdb")
    await rm(join(folder, "engine"))
    expect(await openingFailure(folder, "leveldb")).toMatchObject({ _tag: "EngineDiffers" })
    expect((await Effect.runPromise(inspect(folder))).engine).toBe("rocksdb")
    await withStore(folder, Effect.void)
    expect(engineOf(folder)).toBe("rocksdb")
  })

  it("is not guessed when the file `engine` is corrupted", async () => {
    const folder = await newFolder("leveldb")
    await writeFile(join(folder, "engine"), "berkeley\n")
    expect(await openingFailure(folder)).toMatchObject({ _tag: "StorageCorrupted" })
    expect(await openingFailure(folder, "leveldb")).toMatchObject({ _tag: "StorageCorrupted" })
  })
})

const store = (folder: string) => join(folder, "store")

const filesOf = async (folder: string, ending: string) =>
  (await readdir(store(folder))).filter((name) => name.endsWith(ending))

const append = (from: number, to: number, value: (n: number) => string) =>
  Effect.flatMap(
    Storage,
    (storage) =>
      Effect.forEach(itemsOf(from, to), ({ n }) =>
        storage.commit([commitOf({ append: [{ n, value: value(n) }] })]))
  )

describe("LevelDB's logs", () => {
  /** A folder with one log of small batches, and where each of them ends. */
  const logged = async () => {
    const folder = await newFolder("leveldb")
    await withStore(folder, append(1, 30, (n) => `item ${n}`))
    const [name = ""] = await filesOf(folder, ".log")
    const path = join(store(folder), name)
    const log = await readFile(path)
    const ends: Array<number> = []
    for (let at = 0; at < log.length;) ends.push(at += 7 + log.readUInt16LE(at + 4))
    return { folder, path, log, ends }
  }

  it("have checksums of RFC 3720", () => {
    expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283)
    expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa)
  })

  it("have no gap when they are intact, divided into two, or truncated at any byte", async () => {
    const { ends, folder, log, path } = await logged()
    expect(ends.length).toBeGreaterThan(30)
    expect(logGap(store(folder))).toBeUndefined()
    for (let size = 0; size < log.length; size += 7) {
      await writeFile(path, log.subarray(0, size))
      expect(logGap(store(folder))).toBeUndefined()
    }
    const middle = ends[10] ?? 0
    await writeFile(path, log.subarray(0, middle))
    await writeFile(join(store(folder), "000999.log"), log.subarray(middle))
    expect(logGap(store(folder))).toBeUndefined()
  })

  it("have a gap when a batch of an earlier log, or a whole log, is missing", async () => {
    const { ends, folder, log, path } = await logged()
    await writeFile(path, log.subarray(0, ends[9]))
    await writeFile(join(store(folder), "000999.log"), log.subarray(ends[10]))
    expect(logGap(store(folder))).toMatch(
      /^000999\.log continues with change \d+, and \d+ is missing/
    )
    // The count of commits shows nothing: the last commits are there.
    expect(await openingFailure(folder)).toMatchObject({ _tag: "StorageCorrupted" })
    await writeFile(path, log.subarray(0, ends[10]))
    expect(await openingFailure(folder)).toBeUndefined()
  })

  it("have a gap after each flipped bit that another batch follows", async () => {
    const { ends, folder, log, path } = await logged()
    for (let at = 0; at < (ends.at(-2) ?? 0); at += 37) {
      const flipped = Buffer.from(log)
      flipped.writeUInt8(flipped.readUInt8(at) ^ 0x04, at)
      await writeFile(path, flipped)
      const start = ends.findLast((end) => end <= at) ?? 0
      const isLength = at === start + 4 || at === start + 5
      // After a wrong length no record is found: then the count of commits shows the loss.
      if (isLength) expect(await openingFailure(folder)).toMatchObject({ _tag: "StorageCorrupted" })
      else expect(logGap(store(folder)), `byte ${at}`).toBeDefined()
    }
  })
})

describe("LevelDB's tables", () => {
  it("are verified block by block, compressed and not", async () => {
    const folder = await newFolder("leveldb")
    const noise = (n: number) => crc32c(Buffer.from(String(n))).toString(36)
    const value = (n: number) =>
      n % 2 === 0
        ? "v".repeat(400_000)
        : Array.from({ length: 50_000 }, (_, at) => noise(n + at)).join()
    await withStore(folder, append(1, 40, value))
    // The next start writes the log into a table too.
    await withStore(folder, Effect.void)
    const tables = await filesOf(folder, ".ldb")
    expect(tables.length).toBeGreaterThan(0)
    expect(await tableFault(store(folder))).toBeUndefined()
    expect((await Effect.runPromise(inspect(folder))).faults).toEqual([])
    const aside = join(await newFolder(), "one")
    await mkdir(aside)
    const [name = ""] = tables
    const path = join(aside, name)
    await rename(join(store(folder), name), path)
    const { size } = await stat(path)
    const file = await open(path, "r+")
    const byte = Buffer.alloc(1)
    for (let at = 3; at < size - 48; at += Math.floor(size / 12)) {
      await file.read(byte, 0, 1, at)
      await file.write(Buffer.from([(byte[0] ?? 0) ^ 1]), 0, 1, at)
      expect(await tableFault(aside), `byte ${at}`).toMatch(path)
      await file.write(byte, 0, 1, at)
    }
    expect(await tableFault(aside)).toBeUndefined()
    await file.close()
  })

  it("do not show removed actors' logs for long", async () => {
    const folder = await newFolder("leveldb")
    const of = address("mailbox", "gone")
    await withStore(
      folder,
      Effect.gen(function*() {
        const storage = yield* Storage
        yield* storage.commit([commitOf({ address: of, state: "s", append: itemsOf(1, 2_000) })])
        const { revision } = yield* storage.load(of)
        yield* storage.commit([commitOf({ address: of, expected: revision, state: null })])
        expect(yield* storage.load(of)).toEqual({ state: undefined, revision: 0, head: 0 })
      })
    )
    await withStore(
      folder,
      Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 500)))
    )
    const { counts } = await Effect.runPromise(inspect(folder))
    expect(counts).toMatchObject({ logItems: 0, garbageItems: 0, actors: {} })
  })
})
