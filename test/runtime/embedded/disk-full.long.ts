/**
 * A full disk: commits fail with StorageFull, and reads continue. Commits succeed again as soon as
 * the disk has room. The test needs the right to mount a small tmpfs (root).
 */
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { closeSync, openSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import { address } from "../../../runtime/actor/address.ts"
import type { LogItem } from "../../../runtime/actor/behavior.ts"
import { writeEngine } from "../../../runtime/embedded/engine/engine-choice.ts"
import { type EngineName, engineNames, inspect } from "../../../runtime/embedded/index.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { Records } from "../../../runtime/ports/records.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { commitOf } from "../../suites/storage-probe.ts"
import { newFolder, withStore } from "./folders.ts"

const alice = address("mailbox", "alice")

const RECOVERY_MS = 120_000

const smallDisk = async (engine: EngineName, megabytes: number): Promise<string> => {
  const folder = await newFolder()
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder])
  onTestFinished(() => void execFileSync("umount", ["-l", folder]))
  writeEngine(folder, engine)
  return folder
}

const fill = (path: string): void => {
  const file = openSync(path, "w")
  try {
    for (;;) writeSync(file, Buffer.alloc(64 * 1024))
  } catch (error) {
    expect(error).toMatchObject({ code: "ENOSPC" })
  } finally {
    closeSync(file)
  }
}

const pause = (ms: number) => Effect.promise(() => new Promise((done) => setTimeout(done, ms)))

async function* bytes(length: number) {
  for (let at = 0; at < length; at += 100_000) yield randomBytes(100_000)
}

const overFullDisk = async (engine: EngineName): Promise<void> => {
  const folder = await smallDisk(engine, 192)
  const items: Array<LogItem> = []
  const test = Effect.gen(function*() {
    const [storage, blobs, records] = [yield* Storage, yield* Blobs, yield* Records]
    let timer = 0
    /** The item of a commit that may have been kept. */
    let maybe: LogItem | undefined
    /** Appends one item; returns the failure, if any. */
    const append = Effect.suspend(() => {
      const item = { n: items.length + 1, value: randomBytes(3_000).toString("base64") }
      return storage.commit([commitOf({ append: [item], timer: ++timer })]).pipe(
        Effect.map(([outcome]) => {
          if (outcome?._tag === "Indeterminate") {
            maybe = item
            return outcome.failure
          }
          if (outcome?._tag === "Conflict" && maybe !== undefined) {
            items.push(maybe)
            maybe = undefined
            return undefined
          }
          expect(outcome?._tag).toBe("Committed")
          items.push(item)
          return undefined
        }),
        Effect.catch((failure) => Effect.succeed(failure))
      )
    })
    const appendUntil = (full: boolean) =>
      Effect.gen(function*() {
        for (const startedMs = Date.now(); Date.now() - startedMs < RECOVERY_MS;) {
          const failure = yield* append
          if (failure !== undefined) expect(failure._tag).toBe("StorageFull")
          if ((failure !== undefined) === full) return
          if (failure !== undefined) yield* pause(50)
        }
        throw new Error(full ? "the disk was never full" : "it did not recover")
      })

    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 20; n++) expect(yield* append).toBeUndefined()
      yield* storage.health
      fill(join(folder, "ballast"))
      yield* appendUntil(true)
      for (let n = 0; n < 30; n++) {
        expect(yield* append).toMatchObject({ _tag: "StorageFull" })
        expect(yield* storage.read(alice, 1, 1_000_000)).toEqual(items)
        yield* pause(20)
      }
      // The log may contain its last commit nevertheless.
      expect(yield* Effect.flip(storage.load(alice))).toMatchObject({ _tag: "StorageFull" })
      expect(yield* Effect.flip(storage.health)).toMatchObject({ _tag: "StorageFull" })
      for (const length of [1_000, 5_000_000]) {
        expect(yield* Effect.flip(blobs.put("b", bytes(length), 1e9))).toMatchObject({
          _tag: "StorageFull"
        })
      }
      expect(yield* blobs.info("b")).toBeUndefined()
      expect(yield* Effect.flip(records.write([{ table: "t", key: "k", value: "v" }])))
        .toMatchObject({ _tag: "StorageFull" })
      rmSync(join(folder, "ballast"))
      yield* appendUntil(false)
      yield* storage.health
      expect(yield* storage.read(alice, 1, 1_000_000)).toEqual(items)
    }
    yield* blobs.put("b", bytes(1_000_000), 1e9)
  })
  await withStore(folder, test)
  const read = Effect.flatMap(Storage, (storage) => storage.read(alice, 1, 1_000_000))
  expect(await withStore(folder, read)).toEqual(items)
  expect((await Effect.runPromise(inspect(folder))).faults).toEqual([])
}

it.each(engineNames)(
  "refuses commits on a full disk, continues to read, and recovers: %s",
  overFullDisk
)

it.each(engineNames)(
  "reports a full disk at the start, not corruption: %s",
  async (engine) => {
    const folder = await smallDisk(engine, 16)
    fill(join(folder, "ballast"))
    await expect(withStore(folder, Effect.void)).rejects.toMatchObject({ _tag: "StorageFull" })
    rmSync(join(folder, "ballast"))
    await withStore(folder, Effect.void)
  }
)
