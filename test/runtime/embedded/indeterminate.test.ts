/**
 * A flush that fails after the log has the batch: the database that is opened next has it. The
 * commit is indeterminate, and no activation goes on without it.
 */
import { ClassicLevel } from "classic-level"
import { Effect, ManagedRuntime, Option } from "effect"
import { afterEach, expect, it, onTestFinished, vi } from "vitest"
import { address, shardOf } from "../../../runtime/actor/address.ts"
import { fileNames } from "../../../runtime/embedded/blobs/blob-files.ts"
import { embedded } from "../../../runtime/embedded/index.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { commitOf, revisionOf } from "../../suites/storage-probe.ts"
import { at } from "../probe.ts"
import { dropAll, start } from "../rig.ts"
import { newFolder } from "./folders.ts"

afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  await dropAll()
})

const alice = address("mailbox", "alice")

const openStorage = async () => {
  const folder = await newFolder("leveldb")
  const runtime = ManagedRuntime.make(embedded(folder))
  onTestFinished(() => runtime.dispose())
  return runtime.runPromise(Storage)
}

/** The form of the overloaded `batch` that the store calls. */
interface Batches {
  batch: (changes: unknown, options: unknown) => Promise<void>
}

/** The database stays closed until a `waitFor`, which moves the clock: also on a slow machine. */
const delayReopening = (): void => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
}

/** From now on flushes fail; `keeps`: the log has the batch nevertheless. */
const failFlushes = (keeps: boolean): void => {
  // The type of the class has all overloads, which no one function implements.
  const prototype = ClassicLevel.prototype as unknown as Batches
  const { batch } = prototype
  vi.spyOn(prototype, "batch").mockImplementation(
    async function(this: Batches, changes: unknown, options: unknown) {
      if (keeps) await batch.call(this, changes, options)
      throw Object.assign(new Error("IO error: fsync: Input/output error"), { code: "LEVEL_IO" })
    }
  )
}

/** The next flush waits until the result is called. */
const stallFlush = (): () => void => {
  const prototype = ClassicLevel.prototype as unknown as Batches
  const { batch } = prototype
  let flushNow = (): void => {}
  const isFlushing = new Promise<void>((resolve) => flushNow = resolve)
  vi.spyOn(prototype, "batch").mockImplementationOnce(
    async function(this: Batches, changes: unknown, options: unknown) {
      await isFlushing
      await batch.call(this, changes, options)
    }
  )
  return flushNow
}

const works = (): void => void vi.restoreAllMocks()

it.each([true, false])("reports the commit as indeterminate, kept: %s", async (keeps) => {
  const storage = await openStorage()
  const run = Effect.runPromise
  const [first] = await run(storage.commit([commitOf({ state: "a" })]))
  const expected = revisionOf(first)
  failFlushes(keeps)
  delayReopening()
  const [doubtful] = await run(storage.commit([commitOf({ state: "b", expected })]))
  expect(doubtful).toMatchObject({
    _tag: "Indeterminate",
    failure: { _tag: "StorageUnavailable" }
  })
  // Later commits certainly fail, and the actor is unknown until the database is open again.
  expect(await run(Effect.flip(storage.commit([commitOf({ state: "c", expected })]))))
    .toMatchObject({ _tag: "StorageUnavailable" })
  expect(await run(Effect.flip(storage.load(alice)))).toMatchObject({ _tag: "StorageUnavailable" })
  expect(await run(storage.load(address("mailbox", "bob")))).toMatchObject({ revision: 0 })
  works()
  const found = await vi.waitFor(() => run(storage.load(alice)), { timeout: 10_000 })
  expect(found.state).toBe(keeps ? "b" : "a")
  const [next] = await run(storage.commit([commitOf({ state: "d", expected: found.revision })]))
  expect(revisionOf(next)).toBeGreaterThan(expected)
})

const signals = [{ address: alice, atMs: 5 }]

it.each([true, false])("reports a settled commit after a reopening, kept: %s", async (keeps) => {
  const storage = await openStorage()
  const run = Effect.runPromise
  const settled: Array<number> = []
  const listed: Array<Promise<number>> = []
  const unfollow = storage.followLateCommits?.((shard) => {
    settled.push(shard)
    listed.push(run(storage.timers(shard, 10)).then(({ timers }) => timers.length))
  })
  failFlushes(keeps)
  await run(storage.commit([commitOf({ state: "a", signals })]))
  expect(settled).toEqual([])
  works()
  await vi.waitFor(() => expect(settled).toEqual([shardOf(alice)]), { timeout: 10_000 })
  // What the listener reads has the signal, if the log has it.
  expect(await Promise.all(listed)).toEqual([keeps ? 1 : 0])
  unfollow?.()
})

it("reports a commit whose flush outlasts its caller, and no other one", async () => {
  const storage = await openStorage()
  const run = Effect.runPromise
  const settled: Array<number> = []
  const unfollow = storage.followLateCommits?.((shard) => settled.push(shard))
  const [first] = await run(storage.commit([commitOf({ state: "a" })]))
  const flushNow = stallFlush()
  const write = storage.commit([commitOf({ state: "b", signals, expected: revisionOf(first) })])
  expect(await run(Effect.timeoutOption(write, 50))).toEqual(Option.none())
  expect(settled).toEqual([])
  flushNow()
  await vi.waitFor(() => expect(settled).toEqual([shardOf(alice)]))
  expect((await run(storage.timers(shardOf(alice), 10))).timers).toHaveLength(1)
  unfollow?.()
})

it.each([true, false])("keeps the file of a blob only if the log names it: %s", async (keeps) => {
  const folder = await newFolder("leveldb")
  const runtime = ManagedRuntime.make(embedded(folder))
  onTestFinished(() => runtime.dispose())
  const blobs = await runtime.runPromise(Blobs)
  const run = Effect.runPromise
  const length = 100_000
  async function* bytes() {
    yield Buffer.alloc(length, "large")
  }
  const files = async () => {
    const names: Array<string> = []
    for await (const name of fileNames(folder)) names.push(name)
    return names
  }
  failFlushes(keeps)
  delayReopening()
  expect(await run(Effect.flip(blobs.put("one", bytes(), length))))
    .toMatchObject({ _tag: "StorageUnavailable" })
  // Nothing of this one was written: its file is deleted at once.
  await run(Effect.flip(blobs.put("two", bytes(), length)))
  expect(await files()).toHaveLength(1)
  works()
  await vi.waitFor(() => run(blobs.put("three", bytes(), length)), { timeout: 10_000 })
  await vi.waitFor(async () => expect(await files()).toHaveLength(keeps ? 2 : 1))
  expect((await run(blobs.info("one")))?.lengthBytes).toBe(keeps ? length : undefined)
  if (!keeps) return
  let read = 0
  for await (const chunk of await run(blobs.open("one"))) read += chunk.length
  expect(read).toBe(length)
})

it("decides the message of an indeterminate commit once", async () => {
  const storage = await openStorage()
  // A message that is decided again is decided on the database that has been opened again.
  const rig = await start({ limits: { reloadDelayMs: 500 } }, { storage })
  expect(await rig.ask(at("a"), { _tag: "Add", by: 1 })).toMatchObject({ count: 1 })
  failFlushes(true)
  const doubtful = rig.ask(at("a"), { _tag: "Add", by: 10 })
  setTimeout(works, 20)
  expect(await doubtful).toBe("StorageUnavailable")
  await vi.waitFor(
    async () => expect(await rig.ask(at("a"), { _tag: "Read" })).toMatchObject({ count: 11 }),
    { timeout: 10_000 }
  )
  expect(await rig.ask(at("a"), { _tag: "Add", by: 100 })).toMatchObject({ count: 111 })
})
