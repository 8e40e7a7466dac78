/** An interrupted load, at any step: exactly one of several nodes continues it. */
import { Effect, Exit } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { expect, it } from "vitest"
import { loadIdleMs, loadsPage, loadWatchMs } from "../../http/limits.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { customersTable } from "../../http/resources/customers/customer-table.ts"
import { applyLoad, resumeLoads, retryLoads,
  watchLoads } from "../../http/resources/customers/load-application.ts"
import { type CustomerLoad, isBlobOfPendingLoad, loadBlob, loadChanges, loadsTable,
  parseLoad } from "../../http/resources/customers/load.ts"
import { StorageCorrupted, StorageUnavailable } from "../../runtime/index.ts"
import { makeMemoryBlobs } from "../../runtime/memory/blobs.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"

const run = Effect.runPromise
const rows = 50
const id = "AAAAAAAAAAAAAAAAAAAAAA"

async function* bytes(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("id,name,age\n")
  for (let at = 0; at < rows; at++) yield Buffer.from(`r${at % 40},Name ${at},${at}\n`)
}

const world = async () => {
  const records = { ...makeMemoryRecords(), changesMax: 20 }
  const blobs = makeMemoryBlobs()
  await run(blobs.put("load=x", bytes(), 1_000_000))
  const load: CustomerLoad = {
    state: "pending",
    format: "csv",
    blob: "load=x",
    rows,
    skipped: 0,
    problems: [],
    at: 0,
    created: 0,
    replaced: 0,
    startedMs: 0,
    touchedMs: 0
  }
  await run(records.write(loadChanges(id, load)))
  let failing = Infinity
  const shared = { records, blobs, nowMs: () => 1 }
  // The part of a service that loads use.
  const service = {
    ...shared,
    records: {
      ...records,
      writeIf: (...parameters: Parameters<typeof records.writeIf>) =>
        failing-- <= 0
          ? Effect.fail(new StorageUnavailable({ detail: "planned" }))
          : records.writeIf(...parameters)
    }
  } as unknown as Service
  return { service, load, records, blobs, breakAfter: (steps: number) => (failing = steps) }
}

const expectWhole = async ({ blobs, records }: Awaited<ReturnType<typeof world>>) => {
  const stored = await run(records.range(customersTable.name, { limit: 1_000 }))
  const expected = Array.from({ length: 40 }, (_, at) => {
    const last = at + 40 < rows ? at + 40 : at
    return [`r${at}`, { name: `Name ${last}`, age: last }]
  })
  expect(Object.fromEntries(stored.map(({ key, value }) => [key, JSON.parse(value)])))
    .toEqual(Object.fromEntries(expected))
  const [index = []] = await run(records.keys("customers-by-age", [{ limit: 1_000 }]))
  expect(index).toHaveLength(40)
  const value = await run(records.get(loadsTable, id))
  expect(parseLoad(value ?? "{}")).toMatchObject({
    state: "done",
    at: rows,
    created: 40,
    replaced: 10
  })
  expect(await run(records.keys("loads-pending", [{ limit: 9 }]))).toEqual([[]])
  expect(await run(blobs.info("load=x"))).toBeUndefined()
}

it("continues from its progress after an interruption at any step", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(4), { maxLength: 6 }), async (breaks) => {
      const all = await world()
      for (const steps of breaks) {
        all.breakAfter(steps)
        await run(Effect.ignore(resumeLoads(all.service)))
      }
      all.breakAfter(Infinity)
      await run(resumeLoads(all.service))
      await expectWhole(all)
    }),
    { numRuns: 60 }
  )
})

it("is done once when several try", async () => {
  const all = await world()
  const done = await Promise.all(
    [1, 2, 3].map(() => run(applyLoad(all.service, id, all.load)))
  )
  expect(done.filter((load) => load !== undefined)).toHaveLength(1)
  await expectWhole(all)
})

it("does not touch a load that another node applies", async () => {
  const { load, records, service } = await world()
  await run(resumeLoads(service, 1_000))
  expect(await run(records.get(loadsTable, id))).toBe(JSON.stringify(load))
})

it("ends a load whose file is lost, and continues the others", async () => {
  const all = await world()
  const other = "0000000000000000000000"
  await run(all.records.write(loadChanges(other, { ...all.load, blob: "none", at: 7 })))
  await run(resumeLoads(all.service))
  const value = await run(all.records.get(loadsTable, other))
  expect(parseLoad(value ?? "{}")).toMatchObject({ state: "done", at: 7, problems: [{ row: 8 }] })
  await expectWhole(all)
})

it("continues all loads, however many there are", async () => {
  const all = await world()
  const count = 2 * loadsPage + 3
  const ids = Array.from({ length: count }, (_, at) => `L${String(at).padStart(21, "0")}`)
  for (const one of ids) {
    const blob = loadBlob(one, "first")
    await run(all.blobs.put(blob, bytes(), 1_000_000))
    await run(all.records.write(loadChanges(one, { ...all.load, blob })))
    expect(await run(isBlobOfPendingLoad(all.service, blob))).toBe(true)
    expect(await run(isBlobOfPendingLoad(all.service, loadBlob(one, "second")))).toBe(false)
  }
  await run(resumeLoads(all.service))
  expect(await run(all.records.keys("loads-pending", [{ limit: 9 }]))).toEqual([[]])
  expect(await run(all.blobs.scan(undefined, count))).toEqual([])
  for (const one of ids) {
    expect(await run(isBlobOfPendingLoad(all.service, loadBlob(one, "first")))).toBe(false)
  }
})

/** As `service`, but the file fails after its first chunk, as often as `faults` says. */
const withFaults = ({ service }: Awaited<ReturnType<typeof world>>, faults: number): Service => {
  let left = faults
  async function* failing(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      yield chunk.subarray(0, chunk.length >> 1)
      throw new Error("EIO")
    }
  }
  const open: Service["blobs"]["open"] = (...parameters) =>
    Effect.map(
      service.blobs.open(...parameters),
      (source) => left-- > 0 ? failing(source) : source
    )
  return { ...service, blobs: { ...service.blobs, open } }
}

it("reads a file again after failed reads, without a restart", async () => {
  const all = await world()
  let nowMs = 0
  // Nobody has continued the load for long, whenever the watcher looks for it.
  const service: Service = {
    ...withFaults(all, 2),
    nowMs: () => nowMs += 2 * loadIdleMs
  }
  const pending = async () =>
    parseLoad((await run(all.records.get(loadsTable, id))) ?? "{}").state === "pending"
  await run(
    Effect.gen(function*() {
      yield* Effect.forkChild(watchLoads(service))
      for (let passes = 0; passes < 9 && (yield* Effect.promise(pending)); passes++) {
        yield* TestClock.adjust(loadWatchMs)
        // The steps of a load are promises, which the test clock does not wait for.
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
    }).pipe(Effect.provide(TestClock.layer()))
  )
  await expectWhole(all)
})

it("fails with StorageUnavailable while the file cannot be read", async () => {
  const all = await world()
  expect(await run(Effect.flip(applyLoad(withFaults(all, 1), id, all.load))))
    .toMatchObject({ _tag: "StorageUnavailable", detail: expect.stringContaining("EIO") })
  await run(resumeLoads(all.service))
  await expectWhole(all)
})

it("continues the other loads when the record of one cannot be read", async () => {
  const all = await world()
  const other = "0000000000000000000000"
  const broken = { table: loadsTable, key: other, value: "{" }
  await run(all.records.write([...loadChanges(other, all.load), broken]))
  expect(Exit.isFailure(await Effect.runPromiseExit(resumeLoads(all.service)))).toBe(true)
  await run(retryLoads(all.service))
  expect(parseLoad((await run(all.records.get(loadsTable, id))) ?? "{}").state).toBe("done")
})

/** A file of the same length that is not what was uploaded. */
const changed = async function*(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) yield Buffer.from(chunk).fill("x", chunk.length - 9)
}

const ended = async function*(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) yield chunk.subarray(0, chunk.length >> 1)
  throw new StorageCorrupted({ detail: "planned" })
}

const unparsable = async function*(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    yield chunk.subarray(0, chunk.length >> 1)
    yield Buffer.alloc((chunk.length + 1) >> 1, 0xff)
  }
}

it.each([["changed", changed], ["ended", ended], ["unparsable", unparsable]])(
  "ends a load whose file is corrupted (%s), and says after which row",
  async (_, corrupted) => {
    const all = await world()
    const { blobs } = all.service
    const open: typeof blobs.open = (...parameters) =>
      Effect.map(blobs.open(...parameters), corrupted)
    await run(resumeLoads({ ...all.service, blobs: { ...blobs, open } }))
    const load = parseLoad((await run(all.records.get(loadsTable, id))) ?? "{}")
    const detail = expect.stringContaining("the file is corrupted")
    expect(load).toMatchObject({ state: "done", problems: [{ row: load.at + 1, detail }] })
    expect(load.at).toBeGreaterThan(0)
    expect(load.at).toBeLessThan(rows)
    expect(await run(all.records.keys("loads-pending", [{ limit: 9 }]))).toEqual([[]])
    const stored = await run(all.records.range(customersTable.name, { limit: 1_000 }))
    expect(stored).toHaveLength(load.created)
    expect(await run(all.records.get(customersTable.name, `r${(load.at - 1) % 40}`))).toBeDefined()
  }
)
