/**
 * Writes the rows of a load into the table of customers, in steps. One conditional write changes
 * the rows of a step and the progress of the load. So a node that continues after a crash begins
 * at the right row, and of two nodes only one succeeds.
 */
import { Effect, Schedule } from "effect"
import type { RecordChange } from "../../../runtime/index.ts"
import { changesPerRow, loadBatchRows, loadIdleMs, loadRetentionMs, loadRetryMs, loadsPage,
  loadWatchMs } from "../../limits.ts"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"
import { replacingValue } from "../../query-engine/index.ts"
import { CustomerFileParser } from "./customer-files.ts"
import { customerOf, type CustomerRow } from "./customer-input.ts"
import { customerChanges, customersTable } from "./customer-table.ts"
import { type CustomerLoad, loadChanges, loadsTable, parseLoad, pendingLoads } from "./load.ts"

/** A row and its number in the file, from 1. */
interface NumberedRow extends CustomerRow {
  readonly at: number
}

interface LoadBatch {
  readonly rows: ReadonlyArray<NumberedRow>
  /** The number of the last row of the file that it covers. */
  readonly at: number
}

/** The rows of a file after the first `from`, in batches. */
async function* batchesOf(
  { documentParser }: Service,
  { format }: CustomerLoad,
  source: AsyncIterable<Uint8Array>,
  from: number,
  size: number
): AsyncGenerator<LoadBatch> {
  let at = 0
  let rows: Array<NumberedRow> = []
  let ready: Array<LoadBatch> = []
  const reader = new CustomerFileParser(documentParser, format, (row) => {
    at++
    if (at <= from) return
    const customer = row.ok ? customerOf(row.value) : row
    if (customer.ok) rows.push({ ...customer.value, at })
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

/** A batch and the current records of its rows. */
interface PreparedBatch extends LoadBatch {
  readonly before: ReadonlyArray<string | undefined>
}

/** Reads the next batch and the records that it replaces; undefined at the end. */
const readBatch = (
  { records }: Service,
  batches: AsyncGenerator<LoadBatch>
): Effect.Effect<PreparedBatch | undefined, HandlerFailure> =>
  Effect.flatMap(
    Effect.promise(() => batches.next()),
    ({ done, value }) =>
      done === true ? Effect.succeed(undefined) : Effect.map(
        records.getMany(customersTable.name, value.rows.map(({ id }) => id)),
        (before) => ({ ...value, before })
      )
  )

interface LoadStep {
  readonly load: CustomerLoad
  readonly changes: ReadonlyArray<RecordChange>
}

/** Divides the changes of a load into steps of at most as many changes as one write may have. */
class LoadPlanner {
  private readonly changesMax: number
  private readonly nowMs: () => number
  /** Rows of the previous batch, which the records read ahead may lack. */
  private written = new Map<string, string>()
  /** The load after all steps so far. */
  load: CustomerLoad

  constructor({ nowMs, records }: Service, load: CustomerLoad) {
    this.changesMax = records.changesMax - loadChanges("", load).length
    this.nowMs = nowMs
    this.load = load
  }

  stepsOf({ at: end, before, rows }: PreparedBatch): ReadonlyArray<LoadStep> {
    const steps: Array<LoadStep> = []
    const latest = new Map<string, string>()
    let changes: Array<RecordChange> = []
    let { at, created, replaced } = this.load
    const finish = () => {
      this.load = { ...this.load, at, created, replaced, touchedMs: this.nowMs() }
      steps.push({ load: this.load, changes })
      changes = []
    }
    for (const [index, { at: number, id, row }] of rows.entries()) {
      const old = latest.get(id) ?? this.written.get(id) ?? before[index]
      const value = replacingValue(customersTable, JSON.stringify(row), old)
      const own = customerChanges(id, value, old)
      if (changes.length + own.length > this.changesMax) finish()
      for (const change of own) changes.push(change)
      latest.set(id, value)
      if (old === undefined) created++
      else replaced++
      at = number
    }
    at = end
    finish()
    this.written = latest
    return steps
  }
}

/** Writes a step, unless the load has changed since; returns whether it wrote. */
const writeStep = (
  { records }: Service,
  id: string,
  before: CustomerLoad,
  { changes, load }: LoadStep
): Effect.Effect<boolean, HandlerFailure> =>
  records.writeIf(
    [{ table: loadsTable, key: id, value: JSON.stringify(before) }],
    [...changes, ...loadChanges(id, load)]
  )

/** Writes the steps of a batch; false when another node applies the load. */
const writeSteps = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  from: CustomerLoad,
  steps: ReadonlyArray<LoadStep>
): Effect.fn.Return<boolean, HandlerFailure> {
  let load = from
  for (const step of steps) {
    if (!(yield* writeStep(service, id, load, step))) return false
    load = step.load
  }
  return true
})

/**
 * Applies the rest of a load, and returns the completed load; undefined when another node applies
 * it. The next batch is read while one is written.
 */
export const applyLoad = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  pending: CustomerLoad
): Effect.fn.Return<CustomerLoad | undefined, HandlerFailure> {
  const { blobs, records } = service
  const size = Math.min(loadBatchRows, Math.floor((records.changesMax - 2) / changesPerRow))
  const batches = batchesOf(service, pending, yield* blobs.open(pending.blob), pending.at, size)
  const planner = new LoadPlanner(service, pending)
  const ready = Effect.map(readBatch(service, batches), (batch) => {
    if (batch === undefined) return undefined
    const from = planner.load
    return { from, steps: planner.stepsOf(batch) }
  })
  let next = yield* ready
  while (next !== undefined) {
    const writing = writeSteps(service, id, next.from, next.steps)
    const [isWritten, after] = yield* Effect.all([writing, ready], { concurrency: 2 })
    if (!isWritten) return
    next = after
  }
  const done: CustomerLoad = { ...planner.load, state: "done" }
  if (!(yield* writeStep(service, id, planner.load, { load: done, changes: [] }))) return
  yield* Effect.ignore(blobs.remove(pending.blob))
  return done
})

/** Continues a load that no node has changed for `idleMs`. */
const resumeLoad = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  idleMs: number
): Effect.fn.Return<void, HandlerFailure> {
  const { nowMs, records } = service
  const value = yield* records.get(loadsTable, id)
  if (value === undefined) return
  const load = parseLoad(value)
  if (load.state !== "pending" || nowMs() - load.touchedMs < idleMs) return
  yield* applyLoad(service, id, load).pipe(
    Effect.catchTag(
      "BlobMissing",
      () => writeStep(service, id, load, { load: endedWithoutFile(load), changes: [] })
    )
  )
})

/**
 * Continues a load in the background after a failed write, which the store may have kept. Retries
 * failures for `loadIdleMs`. After that time `watchLoads` continues the load, on any node.
 */
export const continueLoad = (service: Service, id: string): Effect.Effect<void> =>
  resumeLoad(service, id, 0).pipe(
    Effect.retry(Schedule.upTo(Schedule.spaced(loadRetryMs), { duration: loadIdleMs })),
    Effect.ignore,
    Effect.forkDetach,
    Effect.asVoid
  )

/** A load whose file is missing ends with a problem. */
const endedWithoutFile = (load: CustomerLoad): CustomerLoad => ({
  ...load,
  state: "done",
  problems: [
    ...load.problems,
    { row: load.at + 1, detail: "the file is lost; this row and those after it were not loaded" }
  ]
})

/** Continues all interrupted loads; fails with the last failure. */
export const resumeLoads = Effect.fnUntraced(function*(
  service: Service,
  idleMs = 0
): Effect.fn.Return<void, HandlerFailure> {
  let failed: HandlerFailure | undefined
  let after: string | undefined
  for (;;) {
    const range = { limit: loadsPage, ...after === undefined ? {} : { after } }
    const [ids = []] = yield* service.records.keys(pendingLoads, [range])
    for (const id of ids) {
      failed = yield* resumeLoad(service, id, idleMs).pipe(
        Effect.as(failed),
        Effect.catch((failure: HandlerFailure) => Effect.succeed(failure))
      )
    }
    after = ids.at(-1)
    if (ids.length < loadsPage) break
  }
  if (failed !== undefined) return yield* Effect.fail(failed)
})

/** Removes the records of loads after their retention. */
const removeOldLoads = Effect.fnUntraced(function*(
  { nowMs, records }: Service
): Effect.fn.Return<void, HandlerFailure> {
  let after: string | undefined
  for (;;) {
    const range = { limit: loadsPage, ...after === undefined ? {} : { after } }
    const entries = yield* records.range(loadsTable, range)
    const old = entries.filter(({ value }) => {
      const { state, touchedMs } = parseLoad(value)
      return state === "done" && nowMs() - touchedMs > loadRetentionMs
    })
    yield* records.write(
      old.map(({ key }) => ({ table: loadsTable, key, value: null, markerExpires: true }))
    )
    after = entries.at(-1)?.key
    if (entries.length < loadsPage) return
  }
})

/**
 * Continues the loads of failed nodes, for as long as the service runs. It reads the table of
 * customers first, because a node fills its view of the records from the first read on.
 */
export const watchLoads = (service: Service): Effect.Effect<never> =>
  Effect.ignore(service.records.range(customersTable.name, { limit: 1 })).pipe(
    Effect.andThen(Effect.forever(
      Effect.ignore(Effect.andThen(resumeLoads(service, loadIdleMs), removeOldLoads(service))).pipe(
        Effect.andThen(Effect.sleep(loadWatchMs))
      )
    ))
  )
