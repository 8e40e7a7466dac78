/** A failed flush reopens the database, also when the first reopening fails. */
import { ClassicLevel } from "classic-level"
import { Effect, ManagedRuntime } from "effect"
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest"
import { openLeveldb } from "../../../runtime/embedded/engine/leveldb.ts"
import { embedded } from "../../../runtime/embedded/index.ts"
import { EmbeddedStore } from "../../../runtime/embedded/storage/store.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { commitOf } from "../../suites/storage-probe.ts"
import { newFolder } from "./folders.ts"

afterEach(() => void vi.restoreAllMocks())

/** The forms of the binding's methods that the store calls. */
interface Native {
  batch: (changes: unknown, options: unknown) => Promise<void>
  close: () => Promise<void>
}

// The type of the class has all overloads, which no one function implements.
const native = ClassicLevel.prototype as unknown as Native

const failOnce = (method: keyof Native): void =>
  void vi.spyOn(native, method).mockRejectedValueOnce(
    Object.assign(new Error("IO error"), { code: "LEVEL_IO" })
  )

/** The prototype of an open database, whose class is private to its engine. */
const databaseClass = async () => {
  const store = new EmbeddedStore(await newFolder("leveldb"), {
    restoring: false,
    wanted: undefined
  })
  await store.start()
  // Each object has a prototype; here it has the methods of the database.
  const prototype = Object.getPrototypeOf(store.database()) as ReturnType<typeof store.database>
  await store.stop()
  return prototype
}

describe("the store works again", () => {
  const commit = commitOf({ state: "a" })
  const start = async () => {
    const runtime = ManagedRuntime.make(embedded(await newFolder("leveldb")))
    onTestFinished(() => runtime.dispose())
    return runtime.runPromise(Storage)
  }
  /** Each commit settles, and one is kept in the end. */
  const recovers = async (storage: Storage["Service"]): Promise<void> => {
    failOnce("batch")
    const [outcome] = await Effect.runPromise(storage.commit([commit]))
    expect(outcome).toMatchObject({ _tag: "Indeterminate" })
    const kept = () => Effect.runPromise(Effect.timeout(storage.commit([commit]), "2 seconds"))
    await vi.waitFor(async () => expect(await kept()).toMatchObject([{ _tag: "Committed" }]), {
      timeout: 10_000,
      interval: 20
    })
  }

  it("after its writer could not be started", async () => {
    const database = await databaseClass()
    const storage = await start()
    const starting = vi.spyOn(database, "startWriter").mockImplementationOnce(() => {
      throw Object.assign(new Error("too many open files"), { code: "EMFILE" })
    })
    await recovers(storage)
    expect(starting).toHaveBeenCalledTimes(2)
  }, 20_000)

  it("after the database could not be closed", async () => {
    const storage = await start()
    failOnce("close")
    await recovers(storage)
    expect(native.close).toHaveBeenCalledTimes(2)
  }, 20_000)
})

it("a store whose writer cannot be started leaves its folder unlocked", async () => {
  const database = await databaseClass()
  const folder = await newFolder("leveldb")
  const open = () => {
    const runtime = ManagedRuntime.make(embedded(folder))
    onTestFinished(() => runtime.dispose())
    return runtime.runPromise(Storage)
  }
  vi.spyOn(database, "startWriter").mockImplementationOnce(() => {
    throw Object.assign(new Error("too many open files"), { code: "EMFILE" })
  })
  await expect(open()).rejects.toMatchObject({ detail: expect.stringContaining("open files") })
  await open()
})

it("a database whose folder cannot be flushed leaves it unlocked", async () => {
  const path = await newFolder()
  const failed = openLeveldb(path, true, undefined, () => Promise.reject(new Error("EIO")))
  await expect(failed).rejects.toThrow("EIO")
  await (await openLeveldb(path, true)).close()
})
