/**
 * Bringing a load's rows into the table, in steps. Each step writes its rows and how far the load
 * has got as one change, upon the load as it was: so whoever goes on after a crash goes on where
 * it was, and of two that try only one does.
 */
import { Effect } from "effect"
import type { RecordChange } from "../../runtime/index.ts"
import type { Failure } from "../failures.ts"
import type { Service } from "../service.ts"
import { type Customer, customerOf } from "./given.ts"
import { FileReader } from "./formats.ts"
import {
  changesPerRow,
  loadBatchRows,
  loadIdleMs,
  loadKeptMs,
  loadsPage,
  loadWatchMs
} from "./limits.ts"
import { type Load, loadChanges, loadsTable, parseLoad, pendingLoads } from "./load.ts"
import { customerChanges, customers } from "./table.ts"

interface Batch {
  readonly rows: ReadonlyArray<Customer>
  /** Rows of the file up to the last of these. */
  readonly at: number
}

/** The rows of a file after the first `from`, in batches. */
async function* batchesOf(
  { format }: Load,
  source: AsyncIterable<Uint8Array>,
  from: number,
  size: number
): AsyncGenerator<Batch> {
  let at = 0
  let rows: Array<Customer> = []
  let ready: Array<Batch> = []
  const reader = new FileReader(format, (given) => {
    at++
    if (at <= from) return
    const customer = given.ok ? customerOf(given.value) : given
    if (customer.ok) rows.push(customer.value)
    if (rows.length < size) return
    ready.push({ rows, at })
    rows = []
  })
  for await (const bytes of source) {
    reader.write(bytes)
    for (const batch of ready.splice(0)) yield batch
  }
  reader.end()
  yield* ready
  yield { rows, at }
  ready = []
}

interface Step {
  readonly load: Load
  readonly changes: ReadonlyArray<RecordChange>
}

/** What a batch changes, upon the rows that are there. */
const stepOf = Effect.fnUntraced(function*(
  { nowMs, records }: Service,
  load: Load,
  { at, rows }: Batch
): Effect.fn.Return<Step, Failure> {
  const values = yield* records.getMany(customers.name, rows.map(({ id }) => id))
  const latest = new Map<string, string | undefined>()
  const changes: Array<RecordChange> = []
  let created = 0
  for (const [index, { id, row }] of rows.entries()) {
    const before = latest.has(id) ? latest.get(id) : values[index]
    const value = JSON.stringify(row)
    if (before === undefined) created++
    latest.set(id, value)
    for (const change of customerChanges(id, value, before)) changes.push(change)
  }
  return {
    load: {
      ...load,
      at,
      created: load.created + created,
      replaced: load.replaced + rows.length - created,
      touchedMs: nowMs()
    },
    changes
  }
})

const written = (
  { records }: Service,
  id: string,
  before: Load,
  { changes, load }: Step
): Effect.Effect<boolean, Failure> =>
  records.writeIf(
    [{ table: loadsTable, key: id, value: JSON.stringify(before) }],
    [...changes, ...loadChanges(id, load)]
  )

/** Applies what is left of a load; the load as it is then, undefined when another does it. */
export const applyLoad = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  begun: Load
): Effect.fn.Return<Load | undefined, Failure> {
  const { arriving, blobs, records } = service
  const size = Math.min(loadBatchRows, Math.floor((records.changesMax - 2) / changesPerRow))
  const batches = batchesOf(begun, yield* blobs.open(begun.blob), begun.at, size)
  let load = begun
  for (;;) {
    const next = yield* Effect.promise(() => batches.next())
    if (next.done === true) break
    const step = yield* stepOf(service, load, next.value)
    if (!(yield* written(service, id, load, step))) return
    load = step.load
  }
  const done: Load = { ...load, state: "done" }
  if (!(yield* written(service, id, load, { load: done, changes: [] }))) return
  yield* Effect.ignore(blobs.remove(begun.blob))
  arriving.delete(begun.blob)
  return done
})

/** Goes on with a load that nobody touches. */
const resume = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  idleMs: number
): Effect.fn.Return<void, Failure> {
  const { nowMs, records } = service
  const value = yield* records.get(loadsTable, id)
  if (value === undefined) return
  const load = parseLoad(value)
  if (load.state !== "pending" || nowMs() - load.touchedMs < idleMs) return
  // The sweep for orphans knows the blobs of content only.
  service.arriving.add(load.blob)
  yield* applyLoad(service, id, load).pipe(
    Effect.catchTag(
      "BlobMissing",
      () => written(service, id, load, { load: lost(load), changes: [] })
    )
  )
})

/** The file is gone, by no fault of this service's own: the load ends where it is, and says so. */
const lost = (load: Load): Load => ({
  ...load,
  state: "done",
  problems: [
    ...load.problems,
    { row: load.at + 1, detail: "the file is lost; this row and those after it were not loaded" }
  ]
})

/** Goes on with all loads that a crash has left; fails as the last of those that failed. */
export const resumeLoads = Effect.fnUntraced(function*(
  service: Service,
  idleMs = 0
): Effect.fn.Return<void, Failure> {
  const [pending = []] = yield* service.records.keys(pendingLoads, [{ limit: loadsPage }])
  let failed: Failure | undefined
  for (const id of pending) {
    failed = yield* resume(service, id, idleMs).pipe(
      Effect.as(failed),
      Effect.catch((failure: Failure) => Effect.succeed(failure))
    )
  }
  if (failed !== undefined) return yield* Effect.fail(failed)
})

/** Forgets loads that ended long ago. */
const forgetLoads = Effect.fnUntraced(function*(
  { nowMs, records }: Service
): Effect.fn.Return<void, Failure> {
  let after: string | undefined
  for (;;) {
    const range = { limit: loadsPage, ...after === undefined ? {} : { after } }
    const entries = yield* records.range(loadsTable, range)
    const old = entries.filter(({ value }) => {
      const { state, touchedMs } = parseLoad(value)
      return state === "done" && nowMs() - touchedMs > loadKeptMs
    })
    yield* records.write(old.map(({ key }) => ({ table: loadsTable, key, value: null })))
    after = entries.at(-1)?.key
    if (entries.length < loadsPage) return
  }
})

/**
 * Goes on with loads whose node is gone, for as long as the service runs. The table is looked into
 * at once: a node of a cluster begins to fill its view of the records at the first look.
 */
export const watchLoads = (service: Service): Effect.Effect<never> =>
  Effect.ignore(service.records.range(customers.name, { limit: 1 })).pipe(
    Effect.andThen(Effect.forever(
      Effect.ignore(Effect.andThen(resumeLoads(service, loadIdleMs), forgetLoads(service))).pipe(
        Effect.andThen(Effect.sleep(loadWatchMs))
      )
    ))
  )
