/**
 * Bringing a load's rows into the table, in steps. Each step writes its rows and how far the load
 * has got as one change, upon the load as it was: so whoever goes on after a crash goes on where
 * it was, and of two that try only one does.
 */
import { Effect } from "effect"
import type { RecordChange } from "../../../runtime/index.ts"
import { changesPerRow, loadBatchRows, loadIdleMs, loadKeptMs, loadsPage,
  loadWatchMs } from "../../limits.ts"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"
import { FileReader } from "./customer-files.ts"
import { customerOf, type CustomerRow } from "./customer-input.ts"
import { customerChanges, customersTable } from "./customer-table.ts"
import { type CustomerLoad, loadChanges, loadsTable, parseLoad, pendingLoads } from "./load.ts"

/** A row, and how many rows of the file there are up to it. */
interface Numbered extends CustomerRow {
  readonly at: number
}

interface Batch {
  readonly rows: ReadonlyArray<Numbered>
  /** Rows of the file up to the end of these. */
  readonly at: number
}

/** The rows of a file after the first `from`, in batches. */
async function* batchesOf(
  { documentParser }: Service,
  { format }: CustomerLoad,
  source: AsyncIterable<Uint8Array>,
  from: number,
  size: number
): AsyncGenerator<Batch> {
  let at = 0
  let rows: Array<Numbered> = []
  let ready: Array<Batch> = []
  const reader = new FileReader(documentParser, format, (given) => {
    at++
    if (at <= from) return
    const customer = given.ok ? customerOf(given.value) : given
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

/** A batch, and the rows that were there when it was read. */
interface Read extends Batch {
  readonly before: ReadonlyArray<string | undefined>
}

/** Reads ahead: the next batch, with what it will replace; undefined at the end. */
const nextOf = (
  { records }: Service,
  batches: AsyncGenerator<Batch>
): Effect.Effect<Read | undefined, HandlerFailure> =>
  Effect.flatMap(
    Effect.promise(() => batches.next()),
    ({ done, value }) =>
      done === true ? Effect.succeed(undefined) : Effect.map(
        records.getMany(customersTable.name, value.rows.map(({ id }) => id)),
        (before) => ({ ...value, before })
      )
  )

interface Step {
  readonly load: CustomerLoad
  readonly changes: ReadonlyArray<RecordChange>
}

/** What the rows of a load change, in steps of as many changes as one write may have. */
class Steps {
  private readonly changesMax: number
  private readonly nowMs: () => number
  /** Rows of the batch before, which may not have been read again. */
  private written = new Map<string, string>()
  /** As it will be when all steps so far are written. */
  load: CustomerLoad

  constructor({ nowMs, records }: Service, load: CustomerLoad) {
    this.changesMax = records.changesMax - loadChanges("", load).length
    this.nowMs = nowMs
    this.load = load
  }

  of({ at: end, before, rows }: Read): ReadonlyArray<Step> {
    const steps: Array<Step> = []
    const latest = new Map<string, string>()
    let changes: Array<RecordChange> = []
    let { at, created, replaced } = this.load
    const finish = () => {
      this.load = { ...this.load, at, created, replaced, touchedMs: this.nowMs() }
      steps.push({ load: this.load, changes })
      changes = []
    }
    for (const [index, { at: place, id, row }] of rows.entries()) {
      const value = JSON.stringify(row)
      const old = latest.get(id) ?? this.written.get(id) ?? before[index]
      const own = customerChanges(id, value, old)
      if (changes.length + own.length > this.changesMax) finish()
      for (const change of own) changes.push(change)
      latest.set(id, value)
      if (old === undefined) created++
      else replaced++
      at = place
    }
    at = end
    finish()
    this.written = latest
    return steps
  }
}

const written = (
  { records }: Service,
  id: string,
  before: CustomerLoad,
  { changes, load }: Step
): Effect.Effect<boolean, HandlerFailure> =>
  records.writeIf(
    [{ table: loadsTable, key: id, value: JSON.stringify(before) }],
    [...changes, ...loadChanges(id, load)]
  )

/** The steps of one batch, one after the other; false when another does it. */
const writtenAll = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  from: CustomerLoad,
  steps: ReadonlyArray<Step>
): Effect.fn.Return<boolean, HandlerFailure> {
  let load = from
  for (const step of steps) {
    if (!(yield* written(service, id, load, step))) return false
    load = step.load
  }
  return true
})

/**
 * Applies what is left of a load; the load as it is then, undefined when another does it. While a
 * batch is written the next one is read.
 */
export const applyLoad = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  begun: CustomerLoad
): Effect.fn.Return<CustomerLoad | undefined, HandlerFailure> {
  const { pendingBlobs, blobs, records } = service
  const size = Math.min(loadBatchRows, Math.floor((records.changesMax - 2) / changesPerRow))
  const batches = batchesOf(service, begun, yield* blobs.open(begun.blob), begun.at, size)
  const steps = new Steps(service, begun)
  const ready = Effect.map(nextOf(service, batches), (read) => {
    if (read === undefined) return undefined
    const from = steps.load
    return { from, steps: steps.of(read) }
  })
  let next = yield* ready
  while (next !== undefined) {
    const writing = writtenAll(service, id, next.from, next.steps)
    const [isKept, after] = yield* Effect.all([writing, ready], { concurrency: 2 })
    if (!isKept) return
    next = after
  }
  const done: CustomerLoad = { ...steps.load, state: "done" }
  if (!(yield* written(service, id, steps.load, { load: done, changes: [] }))) return
  yield* Effect.ignore(blobs.remove(begun.blob))
  pendingBlobs.delete(begun.blob)
  return done
})

/** Goes on with a load that nobody touches. */
const resume = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  idleMs: number
): Effect.fn.Return<void, HandlerFailure> {
  const { nowMs, records } = service
  const value = yield* records.get(loadsTable, id)
  if (value === undefined) return
  const load = parseLoad(value)
  if (load.state !== "pending" || nowMs() - load.touchedMs < idleMs) return
  // The sweep for orphans knows the blobs of content only.
  service.pendingBlobs.add(load.blob)
  yield* applyLoad(service, id, load).pipe(
    Effect.catchTag(
      "BlobMissing",
      () => written(service, id, load, { load: lost(load), changes: [] })
    )
  )
})

/** The file is gone, by no fault of this service's own: the load ends where it is, and says so. */
const lost = (load: CustomerLoad): CustomerLoad => ({
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
): Effect.fn.Return<void, HandlerFailure> {
  const [pending = []] = yield* service.records.keys(pendingLoads, [{ limit: loadsPage }])
  let failed: HandlerFailure | undefined
  for (const id of pending) {
    failed = yield* resume(service, id, idleMs).pipe(
      Effect.as(failed),
      Effect.catch((failure: HandlerFailure) => Effect.succeed(failure))
    )
  }
  if (failed !== undefined) return yield* Effect.fail(failed)
})

/** Forgets loads that ended long ago. */
const forgetLoads = Effect.fnUntraced(function*(
  { nowMs, records }: Service
): Effect.fn.Return<void, HandlerFailure> {
  let after: string | undefined
  for (;;) {
    const range = { limit: loadsPage, ...after === undefined ? {} : { after } }
    const entries = yield* records.range(loadsTable, range)
    const old = entries.filter(({ value }) => {
      const { state, touchedMs } = parseLoad(value)
      return state === "done" && nowMs() - touchedMs > loadKeptMs
    })
    yield* records.write(
      old.map(({ key }) => ({ table: loadsTable, key, value: null, fades: true }))
    )
    after = entries.at(-1)?.key
    if (entries.length < loadsPage) return
  }
})

/**
 * Goes on with loads whose node is gone, for as long as the service runs. The table is looked into
 * at once: a node of a cluster begins to fill its view of the records at the first look.
 */
export const watchLoads = (service: Service): Effect.Effect<never> =>
  Effect.ignore(service.records.range(customersTable.name, { limit: 1 })).pipe(
    Effect.andThen(Effect.forever(
      Effect.ignore(Effect.andThen(resumeLoads(service, loadIdleMs), forgetLoads(service))).pipe(
        Effect.andThen(Effect.sleep(loadWatchMs))
      )
    ))
  )
