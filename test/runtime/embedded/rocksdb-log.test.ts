/** Record types that RocksDB would reread forever are corruption; RocksDB checks the rest. */
import { Effect } from "effect"
import { cp, readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { address } from "../../../runtime/actor/address.ts"
import { blockBytes, maskedCrc32c, recordHeaderBytes,
  recordType } from "../../../runtime/embedded/engine/log-format.ts"
import { stuckAt } from "../../../runtime/embedded/engine/rocksdb-log.ts"
import { inspect } from "../../../runtime/embedded/index.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { commitOf, itemsOf } from "../../suites/storage-probe.ts"
import { newFolder, openingFailure, withStore } from "./folders.ts"

const alice = address("mailbox", "alice")

const { first: FIRST, full: FULL, last: LAST } = recordType

const RECYCLED = [5, 6, 7, 8, 11]

/** A record in the format of a log. */
const record = (type: number, text: string): Buffer => {
  const body = Buffer.concat([Buffer.from([type]), Buffer.from(text)])
  const header = Buffer.alloc(recordHeaderBytes - 1)
  header.writeUInt32LE(maskedCrc32c(body))
  header.writeUInt16LE(text.length, 4)
  return Buffer.concat([header, body])
}

const padded = (block: Buffer): Buffer =>
  Buffer.concat([block, Buffer.alloc(blockBytes - block.length)])

/** One byte changed. */
const changed = (whole: Buffer, at: number, byte: number): Buffer => {
  const copy = Buffer.from(whole)
  copy.writeUInt8(byte, at)
  return copy
}

const found = async (log: Buffer): Promise<number | undefined> => {
  const path = join(await newFolder(), "000001.log")
  await writeFile(path, log)
  return stuckAt(path)
}

const one = record(FULL, "one")

describe("a log of RocksDB", () => {
  it("is read to its end whatever its records are, when their types are usual", async () => {
    const fragments = [record(FIRST, "a".repeat(900)), record(LAST, "\x05\x06\x07".repeat(300))]
    expect(await found(Buffer.concat([one, ...fragments, one]))).toBe(undefined)
    expect(await found(Buffer.alloc(0))).toBe(undefined)
    expect(await found(padded(one))).toBe(undefined)
  })

  it.each(RECYCLED)("has an end no more at a record of type %d", async (type) => {
    const two = Buffer.concat([one, one, one])
    expect(await found(changed(two, one.length + 6, type))).toBe(one.length)
    // In a later block, and in a later piece of what is read at once.
    const far = Buffer.concat(Array.from({ length: 40 }, () => padded(one)))
    const at = 39 * blockBytes
    expect(await found(changed(far, at + 6, type))).toBe(at)
  })

  it("is a recycled one when it begins with such a record", async () => {
    expect(await found(changed(Buffer.concat([one, one, one]), 6, 5))).toBe(undefined)
    const both = changed(changed(Buffer.concat([one, one]), 6, 5), one.length + 6, 5)
    expect(await found(both)).toBe(undefined)
  })

  it("is skipped from a corrupted record to the end of the block", async () => {
    // The length leads into the middle of a record that looks like one of a recycled log.
    const trap = record(FULL, `${"\0".repeat(6)}\x05`)
    const torn = Buffer.concat([one, changed(trap, 4, 0), one])
    expect(await found(torn)).toBe(undefined)
    const later = Buffer.concat([padded(torn), changed(one, 6, 6)])
    expect(await found(later)).toBe(blockBytes)
  })
})

/** Where records begin in a log of one block. */
const recordsOf = (log: Buffer): ReadonlyArray<number> => {
  const places: Array<number> = []
  for (let at = 0; at < log.length; at += recordHeaderBytes + log.readUInt16LE(at + 4)) {
    places.push(at)
  }
  return places
}

describe("a store on RocksDB", () => {
  it("is refused, not read forever, when the type of a record has changed", async () => {
    const [running, crashed] = [await newFolder("rocksdb"), await newFolder()]
    await withStore(
      running,
      Effect.gen(function*() {
        const storage = yield* Storage
        for (const n of [1, 2, 3]) yield* storage.commit([commitOf({ append: itemsOf(n, n) })])
        yield* Effect.promise(() => cp(running, crashed, { recursive: true }))
      })
    )
    const names = (await readdir(join(crashed, "store"))).filter((name) =>
      /^MANIFEST|\.log$/.test(name)
    )
    const tried = { log: 0, manifest: 0 }
    for (const name of names) {
      const path = join(crashed, "store", name)
      const whole = await readFile(path)
      const [, ...records] = recordsOf(whole)
      for (const at of records) {
        for (const type of RECYCLED) {
          await writeFile(path, changed(whole, at + 6, type))
          const detail = `${name} is corrupted at byte ${at}: the type of a record`
          expect(await openingFailure(crashed)).toMatchObject({ _tag: "StorageCorrupted", detail })
          tried[name.endsWith(".log") ? "log" : "manifest"]++
        }
      }
      await writeFile(path, changed(whole, (records[0] ?? 0) + 6, 5))
      expect((await Effect.runPromise(inspect(crashed))).faults).not.toEqual([])
      await writeFile(path, whole)
    }
    expect(tried.log).toBeGreaterThan(10)
    expect(tried.manifest).toBeGreaterThan(0)
    const read = Effect.flatMap(Storage, (storage) => storage.read(alice, 1, 10))
    expect(await withStore(crashed, read)).toEqual(itemsOf(1, 3))
  })
})
