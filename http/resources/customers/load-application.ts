/**
 * Writes the rows of a load into the table of customers, in steps. One conditional write changes
 * the rows of a step and the progress of the load. So a node that continues after a crash begins
 * at the right row, and of two nodes only one succeeds.
 */
import { type Cause, Effect, Exit, Result, Schedule } from "effect"
import { createHash } from "node:crypto"
import { logFailure, type RecordChange, StorageCorrupted, type StorageFailure,
  StorageUnavailable } from "../../../runtime/index.ts"
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

/** The stored file of a load, and the digest of what was uploaded. */
interface StoredFile {
  readonly source: AsyncIterable<Uint8Array>
  readonly digest: string
}

/**
 * The rows of a file after the first `from`, in batches. Throws StorageCorrupted if the file is not
 * what was uploaded. A file that cannot be parsed is read to its end to find that out.
 */
async function* batchesOf(
  { documentParser }: Service,
  { format }: CustomerLoad,
  { digest, source }: StoredFile,
  from: number,
  size: number
): AsyncGenerator<LoadBatch, void> {
  const checksum = createHash("sha256")
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
  let broken: unknown
  for await (const bytes of source) {
    checksum.update(bytes)
    if (broken !== undefined) continue
    try {
      reader.write(bytes)
    } catch (error) {
      broken = error
    }
    for (const batch of ready.splice(0)) yield batch
  }
  if (checksum.digest("base64url") !== digest) {
    throw new StorageCorrupted({ detail: "the file does not match its digest" })
  }
  if (broken !== undefined) throw broken
  reader.end()
  yield* ready
  yield { rows, at }
  ready = []
}

/** A batch and the current records of its rows. */
interface PreparedBatch extends LoadBatch {
  readonly before: ReadonlyArray<string | undefined>
}

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

/** What a node reads next of a file: the steps of a batch, the end, or why the rest is lost. */
type LoadReading =
  | { readonly _tag: "Batch"; readonly from: CustomerLoad; readonly steps: ReadonlyArray<LoadStep> }
  | { readonly _tag: "End" }
  | FileLoss

interface FileLoss {
  readonly _tag: "Lost"
  readonly why: "lost" | "corrupted"
}

const missing: LoadReading = { _tag: "Lost", why: "lost" }

const corrupted: LoadReading = { _tag: "Lost", why: "corrupted" }

/** A file that is corrupted stays so. After any other failure the node reads it again. */
const asFileFailure = (error: unknown): StorageCorrupted | StorageUnavailable =>
  error instanceof StorageCorrupted || error instanceof StorageUnavailable
    ? error
    : new StorageUnavailable({ detail: `the file of a load cannot be read: ${String(error)}` })

/** The next batch; undefined at the end. */
const nextBatch = (batches: AsyncGenerator<LoadBatch, void>) =>
  Effect.tryPromise({
    try: async () => (await batches.next()).value ?? undefined,
    catch: asFileFailure
  })

/** Reads the next batch and the records that it replaces, and plans its steps. */
const readSteps = Effect.fnUntraced(function*(
  { records }: Service,
  planner: LoadPlanner,
  batches: AsyncGenerator<LoadBatch, void>
): Effect.fn.Return<LoadReading, StorageFailure> {
  const next = yield* Effect.result(nextBatch(batches))
  if (Result.isFailure(next)) {
    return next.failure instanceof StorageCorrupted ? corrupted : yield* next.failure
  }
  const batch = next.success
  if (batch === undefined) return { _tag: "End" }
  const before = yield* records.getMany(customersTable.name, batch.rows.map(({ id }) => id))
  const from = planner.load
  return { _tag: "Batch", from, steps: planner.stepsOf({ ...batch, before }) }
})

/** Opens the file of a load; the effect that it returns reads its next batch. */
const openFile = (
  service: Service,
  planner: LoadPlanner
): Effect.Effect<Effect.Effect<LoadReading, StorageFailure>, StorageFailure> => {
  const { blobs, records } = service
  const { load } = planner
  const size = Math.min(loadBatchRows, Math.floor((records.changesMax - 2) / changesPerRow))
  const opened = Effect.all([blobs.info(load.blob), blobs.open(load.blob)])
  return Effect.map(opened, ([info, source]) => {
    if (info === undefined) return Effect.succeed(missing)
    const file = { source, digest: info.digest }
    return readSteps(service, planner, batchesOf(service, load, file, load.at, size))
  }).pipe(Effect.catchTags({
    BlobMissing: () => Effect.succeed(Effect.succeed(missing)),
    StorageCorrupted: () => Effect.succeed(Effect.succeed(corrupted))
  }))
}

/** A load whose file cannot be read to its end is done with a problem. */
const endedEarly = (load: CustomerLoad, { why }: FileLoss): CustomerLoad => ({
  ...load,
  state: "done",
  problems: [
    ...load.problems,
    { row: load.at + 1, detail: `the file is ${why}; this row and those after it were not loaded` }
  ]
})

/**
 * Applies the rest of a load, and returns the completed load; undefined when another node applies
 * it. The next batch is read while one is written. If that fails, the write still ends: the rows
 * before the failure are loaded.
 */
export const applyLoad = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  pending: CustomerLoad
): Effect.fn.Return<CustomerLoad | undefined, HandlerFailure> {
  const planner = new LoadPlanner(service, pending)
  const reading = yield* openFile(service, planner)
  let next = yield* reading
  while (next._tag === "Batch") {
    const writing = writeSteps(service, id, next.from, next.steps)
    const [isWritten, after] = yield* Effect.all([writing, Effect.exit(reading)], {
      concurrency: 2
    })
    if (!isWritten) return
    next = yield* after
  }
  const done: CustomerLoad = next._tag === "Lost"
    ? endedEarly(planner.load, next)
    : { ...planner.load, state: "done" }
  if (!(yield* writeStep(service, id, planner.load, { load: done, changes: [] }))) return
  yield* Effect.ignore(service.blobs.remove(pending.blob))
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
  yield* applyLoad(service, id, load)
})

/**
 * Continues a load in the background after a failed write, which the store may have kept. Retries
 * failures for `loadIdleMs`. After that time `watchLoads` continues the load, on any node.
 */
export const continueLoad = (service: Service, id: string): Effect.Effect<void> =>
  resumeLoad(service, id, 0).pipe(
    Effect.retry(Schedule.upTo(Schedule.spaced(loadRetryMs), { duration: loadIdleMs })),
    (applying) => logFailure(applying, `the load ${id} did not complete; the node retries`),
    Effect.forkDetach,
    Effect.asVoid
  )

/**
 * Continues all interrupted loads; fails with the last failure. No load prevents the others, not
 * even by a defect.
 */
export const resumeLoads = Effect.fnUntraced(function*(
  service: Service,
  idleMs = 0
): Effect.fn.Return<void, HandlerFailure> {
  let failed: Cause.Cause<HandlerFailure> | undefined
  let after: string | undefined
  for (;;) {
    const range = { limit: loadsPage, ...after === undefined ? {} : { after } }
    const [ids = []] = yield* service.records.keys(pendingLoads, [range])
    for (const id of ids) {
      const exit = yield* Effect.exit(resumeLoad(service, id, idleMs))
      if (Exit.isFailure(exit)) failed = exit.cause
    }
    after = ids.at(-1)
    if (ids.length < loadsPage) break
  }
  if (failed !== undefined) return yield* Effect.failCause(failed)
})

/** Continues all loads, and logs why one of them did not complete. */
export const retryLoads = (service: Service, idleMs = 0): Effect.Effect<void> =>
  logFailure(
    resumeLoads(service, idleMs),
    "loading a file of customers did not complete; the node retries"
  )

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
  logFailure(
    service.records.range(customersTable.name, { limit: 1 }),
    "the table of customers was not read"
  ).pipe(
    Effect.andThen(Effect.forever(
      Effect.andThen(
        retryLoads(service, loadIdleMs),
        logFailure(removeOldLoads(service), "old loads were not removed; the node retries")
      ).pipe(Effect.andThen(Effect.sleep(loadWatchMs)))
    ))
  )
