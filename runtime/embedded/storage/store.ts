/**
 * The embedded store: one open database and its group writer, shared by the storage, record and
 * blob ports. Every change joins the next group. The engine writes and flushes one group at a time,
 * outside the event loop. After a failed write, the database accepts no further write, and every
 * job fails at once until the store has reopened the database. `runtime/embedded/README.md`
 * describes keys and guarantees.
 */
import { Effect, type Scope } from "effect"
import { readdirSync, statfsSync, statSync } from "node:fs"
import { rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { type StorageFailure, StorageFull, StorageLocked,
  StorageUnavailable } from "../../actor/index.ts"
import { groupBytesMax, probeBytes, recoverFirstMs, recoverFreeBytesMin,
  recoverLastMs } from "../../limits.ts"
import { acknowledgedPath, asFailure, type ClearRequest, type Database, databasePath,
  type EngineName, type EngineWriter, type VerifiedTables, WriteBatch, type WriteRequest,
  type WriterEvents } from "../engine/index.ts"
import { makeFolders } from "../folders.ts"
import { FORMAT_KEY } from "../keys.ts"
import { FORMAT, type OpenFailure, openFailure, openVerified } from "./integrity.ts"

/** A change that joins a group. Exactly one of `durable`, `failed` and `broken` is called, once. */
export interface WriteJob {
  /**
   * Reads what `prepare` needs and cannot read synchronously. Called when all earlier groups are
   * durable, and again when the job did not fit into the group. Never rejects.
   */
  readonly fetch?: (() => Promise<void>) | undefined
  /**
   * Checks fences and adds its changes. Called when all earlier groups are durable and the jobs
   * before it in this group are prepared.
   */
  readonly prepare: (batch: WriteBatch) => void
  readonly durable: () => void
  /** `mayBeKept`: the log may have the changes; the store then has them after it reopens. */
  readonly failed: (failure: StorageFailure, mayBeKept: boolean) => void
  /** `prepare` threw a defect. */
  readonly broken: (defect: unknown) => void
}

class GroupWriter {
  /** Count of the commits that are durable. */
  commits = 0
  /** Why every job fails; undefined while the writer accepts jobs. */
  failure: StorageFailure | undefined = undefined
  private readonly onFailure: (failure: StorageFailure) => void
  private readonly batch = new WriteBatch()
  private engine: EngineWriter | undefined = undefined
  /** The memory that the engine has received for the batch. */
  private shared: SharedArrayBuffer | undefined = undefined
  private jobs: Array<WriteJob> = []
  private clears: Array<{ request: ClearRequest; done: (failed: boolean) => void }> = []
  /** Groups and clears take turns. */
  private isClearNext = false
  /** Handles the reply to the one request in flight. */
  private onReply: ((failure: StorageFailure | undefined) => void) | undefined = undefined
  private idleWaiters: Array<() => void> = []

  constructor(onFailure: (failure: StorageFailure) => void) {
    this.onFailure = onFailure
  }

  /**
   * Writes through the engine that `start` returns, until `detach`. When `start` throws, jobs fail
   * as before.
   */
  attach(start: (events: WriterEvents) => EngineWriter, commits: number): void {
    const engine = start({
      replied: (reply) => {
        if (this.engine === engine) this.settle(reply === undefined ? undefined : asFailure(reply))
      },
      exited: (detail) => {
        if (this.engine !== engine) return
        this.engine = undefined
        const failure = new StorageUnavailable({ detail })
        if (this.onReply !== undefined) this.settle(failure)
        else this.fail(failure)
      }
    })
    this.engine = engine
    this.shared = undefined
    this.commits = commits
    this.failure = undefined
    this.writeNext()
  }

  /** Fails all jobs and ends the engine's writer; resolves when it has released the database. */
  async detach(failure: StorageFailure): Promise<void> {
    this.failure ??= failure
    this.failAll(this.failure)
    if (this.onReply !== undefined) await this.idle()
    const { engine } = this
    this.engine = undefined
    await engine?.end()
  }

  /** Resolves when all submitted jobs are settled. */
  async drain(): Promise<void> {
    while (this.onReply !== undefined || (this.jobs.length > 0 && this.failure === undefined)) {
      await this.idle()
    }
  }

  submit(job: WriteJob): void {
    if (this.failure !== undefined) {
      job.failed(this.failure, false)
      return
    }
    this.jobs.push(job)
    if (this.onReply === undefined) this.writeNext()
  }

  /** Deletes a span of keys between two groups, without a flush. */
  clear(request: ClearRequest, done: (failed: boolean) => void): void {
    if (this.failure !== undefined) {
      done(true)
      return
    }
    this.clears.push({ request, done })
    if (this.onReply === undefined) this.writeNext()
  }

  private idle(): Promise<void> {
    return new Promise((resolve) => this.idleWaiters.push(resolve))
  }

  private writeNext(): void {
    while (this.onReply === undefined && this.failure === undefined) {
      const clear = this.jobs.length === 0 || this.isClearNext ? this.clears.shift() : undefined
      this.isClearNext = false
      if (clear !== undefined) {
        this.post(clear.request, (failure) => clear.done(failure !== undefined))
      } else if (this.jobs.length > 0) {
        this.beginGroup()
        this.isClearNext = true
      } else break
    }
    if (this.onReply === undefined) { for (const resolve of this.idleWaiters.splice(0)) resolve() }
  }

  /** Writes the waiting jobs as a group, after they have fetched what they need. */
  private beginGroup(): void {
    const { jobs } = this
    const { length } = jobs
    const fetching = jobs.flatMap(({ fetch }) => fetch === undefined ? [] : [fetch()])
    if (fetching.length === 0) return this.writeGroup(length)
    this.onReply = () => {}
    void Promise.all(fetching).then(() => {
      this.onReply = undefined
      // A failure of the writer has failed these jobs already.
      if (this.jobs === jobs && this.failure === undefined) this.writeGroup(length)
      this.writeNext()
    })
  }

  private writeGroup(jobsMax: number): void {
    const { batch } = this
    const group: Array<WriteJob> = []
    batch.begin(this.commits)
    let taken = 0
    for (const job of this.jobs) {
      if (taken === jobsMax || batch.length >= groupBytesMax) break
      taken++
      if (this.prepare(job)) group.push(job)
    }
    this.jobs = taken === this.jobs.length ? [] : this.jobs.slice(taken)
    if (batch.isEmpty) {
      for (const job of group) job.durable()
      return
    }
    batch.finish()
    const shared = batch.shared === this.shared ? undefined : batch.shared
    this.shared = batch.shared
    this.post({ _tag: "Write", length: batch.length, shared }, (failure) => {
      if (failure === undefined) {
        this.commits = batch.commits
        for (const job of group) job.durable()
      } else for (const job of group) job.failed(failure, true)
    })
  }

  /** Whether the job has added its changes. A job that throws is settled, and adds nothing. */
  private prepare(job: WriteJob): boolean {
    const mark = this.batch.mark()
    try {
      job.prepare(this.batch)
      return true
    } catch (error) {
      this.batch.rollBack(mark)
      // Only a broken invariant throws a TypeError; the binding and the ports throw other errors.
      if (error instanceof TypeError) job.broken(error)
      else job.failed(asFailure(error), false)
      return false
    }
  }

  private post(
    request: WriteRequest | ClearRequest,
    onReply: (failure: StorageFailure | undefined) => void
  ): void {
    this.onReply = onReply
    this.engine?.post(request)
  }

  private settle(failure: StorageFailure | undefined): void {
    const { onReply } = this
    this.onReply = undefined
    if (failure !== undefined) this.failure ??= failure
    onReply?.(failure)
    if (failure !== undefined) this.fail(failure)
    this.writeNext()
  }

  private fail(failure: StorageFailure): void {
    const isReported = this.failure !== undefined && this.failure !== failure
    this.failure ??= failure
    this.failAll(failure)
    if (!isReported) this.onFailure(failure)
  }

  private failAll(failure: StorageFailure): void {
    for (const { failed } of this.jobs.splice(0)) failed(failure, false)
    for (const { done } of this.clears.splice(0)) done(true)
  }
}

/** Bytes of the write-ahead logs: reopening the database may write them into tables. */
const logBytes = (dataDir: string): number => {
  const folder = databasePath(dataDir)
  return readdirSync(folder).filter((name) => name.endsWith(".log")).reduce(
    (sum, name) => sum + statSync(join(folder, name)).size,
    0
  )
}

const freeBytes = (dataDir: string): number => {
  const { bavail, bsize } = statfsSync(dataDir)
  return bavail * bsize
}

/** Writes and flushes a file; rejects if the disk fails. */
const probeDisk = async (dataDir: string): Promise<void> => {
  const path = join(dataDir, "probe")
  try {
    await writeFile(path, Buffer.alloc(probeBytes), { flush: true })
  } finally {
    await rm(path, { force: true })
  }
}

export interface StoreOptions {
  /** The caller fills the store from an archive. */
  readonly restoring: boolean
  /** The database that the folder must have. */
  readonly wanted: EngineName | undefined
}

export class EmbeddedStore {
  readonly dataDir: string
  readonly writer: GroupWriter
  private open: Database | undefined = undefined
  /** The database that has the lock of the folder; while it closes, readers cannot use it. */
  private unclosed: Database | undefined = undefined
  private closed = false
  private hasSynchronousReads = true
  private recoverTimer: NodeJS.Timeout | undefined = undefined
  private recovering: Promise<void> = Promise.resolve()
  private readonly reopenListeners: Array<() => void> = []
  private readonly options: StoreOptions
  private readonly verified: VerifiedTables = new Map()

  constructor(dataDir: string, options: StoreOptions) {
    this.dataDir = dataDir
    this.options = options
    this.writer = new GroupWriter((failure) => this.recoverLater(failure, recoverFirstMs))
  }

  /** The open database; throws StorageUnavailable while the store reopens it. */
  readonly database = (): Database => {
    if (this.open !== undefined) return this.open
    throw new StorageUnavailable({ detail: this.closed ? "the store is closed" : "reopening" })
  }

  /** See {@link Database}: also answers while the store reopens the database. */
  get isSynchronous(): boolean {
    return this.hasSynchronousReads
  }

  /** Calls `listener` after each reopening: cached values may be stale. */
  onReopened(listener: () => void): void {
    this.reopenListeners.push(listener)
  }

  /** Opens the database and starts its writer. Rejects with the error of opening. */
  async start(): Promise<void> {
    const { commits, database } = await openVerified(this.dataDir, {
      ...this.options,
      create: true,
      verified: this.verified
    })
    this.attach(database, commits)
    if (database.getText(FORMAT_KEY) === undefined) await this.writeFormat()
  }

  /** Waits until all submitted jobs are settled, and closes the database. */
  async stop(): Promise<void> {
    this.closed = true
    clearTimeout(this.recoverTimer)
    await this.recovering
    await this.writer.drain()
    // If the last flush fails, only changes that nobody acknowledged are lost.
    await this.detach(new StorageUnavailable({ detail: "the store is closed" }))
      .catch(() => undefined)
  }

  /** The failure with which the store rejects commits; undefined while it accepts them. */
  health(): StorageFailure | undefined {
    if (this.writer.failure !== undefined) return this.writer.failure
    const free = freeBytes(this.dataDir)
    if (free >= recoverFreeBytesMin) return undefined
    return new StorageFull({ detail: `${free} bytes are left on the disk` })
  }

  /**
   * Submits a change, see {@link WriteJob}. `undo` runs unless the change is durable. If a failed
   * change may be kept, `indeterminate` gives the result.
   */
  submit<A>(
    prepare: WriteJob["prepare"],
    result: () => A,
    undo?: () => void,
    fetch?: WriteJob["fetch"],
    indeterminate?: (failure: StorageFailure) => A
  ): Effect.Effect<A, StorageFailure> {
    return Effect.callback<A, StorageFailure>((resume) => {
      this.writer.submit({
        fetch,
        prepare,
        durable: () => resume(Effect.succeed(result())),
        failed: (failure, mayBeKept) => {
          undo?.()
          const hasResult = mayBeKept && indeterminate !== undefined
          resume(hasResult ? Effect.succeed(indeterminate(failure)) : Effect.fail(failure))
        },
        broken: (defect) => {
          undo?.()
          resume(Effect.die(defect))
        }
      })
    })
  }

  /** Runs a read; waits for a reopening first. An error of the read becomes a StorageFailure. */
  read<A>(read: () => A | Promise<A>): Effect.Effect<A, StorageFailure> {
    return Effect.suspend(() => {
      if (this.open === undefined && !this.closed) {
        const waited = () => this.recovering.then(read)
        return Effect.tryPromise({ try: waited, catch: asFailure })
      }
      try {
        const value = read()
        return value instanceof Promise
          ? Effect.tryPromise({ try: () => value, catch: asFailure })
          : Effect.succeed(value)
      } catch (error) {
        return Effect.fail(asFailure(error))
      }
    })
  }

  private attach(database: Database, commits: number): void {
    this.open = database
    this.unclosed = database
    this.hasSynchronousReads = database.isSynchronous
    for (const listener of this.reopenListeners) listener()
    const acknowledged = acknowledgedPath(this.dataDir)
    this.writer.attach((events) => database.startWriter(acknowledged, events), commits)
  }

  /** Rejects when the database cannot be closed: then the next call tries again. */
  private async detach(failure: StorageFailure): Promise<void> {
    await this.writer.detach(failure)
    this.open = undefined
    await this.unclosed?.close()
    this.unclosed = undefined
  }

  private async writeFormat(): Promise<void> {
    const failure = await new Promise<unknown>((resolve) =>
      this.writer.submit({
        prepare: (batch) => batch.put(FORMAT_KEY, FORMAT),
        durable: () => resolve(undefined),
        failed: resolve,
        broken: resolve
      })
    )
    if (failure !== undefined) throw failure
  }

  private recoverLater(failure: StorageFailure, pauseMs: number): void {
    if (this.closed) return
    this.recoverTimer = setTimeout(() => {
      this.recovering = this.recover(failure).catch((error: unknown) => {
        const next = error instanceof StorageLocked ? failure : asFailure(error)
        this.recoverLater(next, Math.min(2 * pauseMs, recoverLastMs))
      })
    }, pauseMs)
    this.recoverTimer.unref()
  }

  /** Reopens the database. Readers keep the old one until the disk has room and takes writes. */
  private async recover(failure: StorageFailure): Promise<void> {
    if (this.closed) return
    const free = freeBytes(this.dataDir)
    if (free < recoverFreeBytesMin + (this.open === undefined ? 0 : logBytes(this.dataDir))) {
      throw failure
    }
    if (this.open !== undefined) await probeDisk(this.dataDir)
    await this.detach(failure)
    const { commits, database } = await openVerified(this.dataDir, {
      ...this.options,
      create: false,
      verified: this.verified
    })
    this.attach(database, commits)
  }
}

/** Opens the store of a folder, and closes it with the scope. */
export const openStore = (
  dataDir: string,
  options: StoreOptions
): Effect.Effect<EmbeddedStore, OpenFailure, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        makeFolders(dataDir)
        const store = new EmbeddedStore(dataDir, options)
        await store.start().catch(async (error: unknown) => {
          await store.stop()
          throw error
        })
        return store
      },
      catch: (error) => openFailure(dataDir, error)
    }),
    (store) => Effect.promise(() => store.stop())
  )
