/**
 * The embedded store: one open database, what writes to it and its guards, shared by the storage,
 * record and blob ports. See this folder's README for keys and guarantees.
 */
import { Effect, type Scope } from "effect"
import { readdirSync, statfsSync, statSync } from "node:fs"
import { mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { type StorageFailure, StorageFull, StorageLocked,
  StorageUnavailable } from "../../actor/index.ts"
import { groupBytesMax, probeBytes, recoverFirstMs, recoverFreeBytesMin,
  recoverLastMs } from "../../limits.ts"
import { acknowledgedPath, asFailure, type ClearRequest, type Database, databasePath,
  type EngineName, type EngineWriter, WriteBatch, type WriteRequest, type WriterEvents,
  type WriterReply } from "../engine/index.ts"
import { FORMAT_KEY } from "../keys.ts"
import { FORMAT, type OpenFailure, openFailure, openVerified } from "./integrity.ts"

/** A change that joins a group. Exactly one of the last three is called, once. */
export interface WriteJob {
  /**
   * Reads what `prepare` will need and cannot read at once; called when all groups before are
   * durable, and again when the job was not taken into the group then. Never rejects.
   */
  readonly fetch?: (() => Promise<void>) | undefined
  /**
   * Checks fences and adds its changes. Called when all groups before are durable; the jobs
   * before it in this group have been prepared.
   */
  readonly prepare: (batch: WriteBatch) => void
  readonly durable: () => void
  readonly failed: (failure: StorageFailure) => void
  /** `prepare` threw a defect. */
  readonly broken: (defect: unknown) => void
}

/** Where the writer's troubles go. */
export interface Trouble {
  readonly onFailure: (failure: StorageFailure) => void
}

export class GroupWriter {
  /** Count of the commits that are durable. */
  commits = 0
  private readonly trouble: Trouble
  private readonly batch = new WriteBatch()
  private engine: EngineWriter | undefined = undefined
  /** The memory that the engine knows. */
  private shared: SharedArrayBuffer | undefined = undefined
  private failure: StorageFailure | undefined = undefined
  private jobs: Array<WriteJob> = []
  private clears: Array<{ request: ClearRequest; done: (failed: boolean) => void }> = []
  private clearNext = false
  private answered: ((failure: StorageFailure | undefined) => void) | undefined = undefined
  private idle: Array<() => void> = []

  constructor(trouble: Trouble) {
    this.trouble = trouble
  }

  /** Why nothing can be written just now. */
  get failing(): StorageFailure | undefined {
    return this.failure
  }

  /** Writes through what this starts from now on. */
  attach(start: (events: WriterEvents) => EngineWriter, commits: number): void {
    this.shared = undefined
    this.commits = commits
    this.failure = undefined
    const engine = start({
      answered: (reply) => {
        if (this.engine === engine) this.answer(reply)
      },
      lost: (detail) => {
        if (this.engine !== engine) return
        this.engine = undefined
        const failure = new StorageUnavailable({ detail })
        if (this.answered !== undefined) this.settle(failure)
        else this.fail(failure)
      }
    })
    this.engine = engine
    this.next()
  }

  /** Ends the engine's writing; resolves when it has let go of the database. */
  async detach(failure: StorageFailure): Promise<void> {
    this.failure ??= failure
    this.failAll(this.failure)
    if (this.answered !== undefined) await new Promise<void>((resolve) => this.idle.push(resolve))
    const { engine } = this
    this.engine = undefined
    await engine?.end()
  }

  /** Resolves when all that was submitted has been answered. */
  async drained(): Promise<void> {
    while (this.answered !== undefined || (this.jobs.length > 0 && this.failure === undefined)) {
      await new Promise<void>((resolve) => this.idle.push(resolve))
    }
  }

  submit(job: WriteJob): void {
    if (this.failure !== undefined) {
      job.failed(this.failure)
      return
    }
    this.jobs.push(job)
    if (this.answered === undefined) this.next()
  }

  /** Deletes a span of keys between two groups; `done` tells whether it failed. */
  clear(request: ClearRequest, done: (failed: boolean) => void): void {
    if (this.failure !== undefined) {
      done(true)
      return
    }
    this.clears.push({ request, done })
    if (this.answered === undefined) this.next()
  }

  private next(): void {
    while (this.answered === undefined && this.failure === undefined) {
      const clear = this.jobs.length === 0 || this.clearNext ? this.clears.shift() : undefined
      this.clearNext = false
      if (clear !== undefined) {
        this.send(clear.request, (failure) => clear.done(failure !== undefined))
      } else if (this.jobs.length > 0) {
        this.beginGroup()
        this.clearNext = true
      } else break
    }
    if (this.answered === undefined) { for (const resolve of this.idle.splice(0)) resolve() }
  }

  /** Lets the jobs read before a group is made of them, where any of them has to. */
  private beginGroup(): void {
    const { jobs } = this
    const { length } = jobs
    const fetching = jobs.flatMap(({ fetch }) => fetch === undefined ? [] : [fetch()])
    if (fetching.length === 0) return this.writeGroup(length)
    this.answered = () => {}
    void Promise.all(fetching).then(() => {
      this.answered = undefined
      // They have failed when the writer has.
      if (this.jobs === jobs && this.failure === undefined) this.writeGroup(length)
      this.next()
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
    this.send({ _tag: "Write", length: batch.length, shared }, (failure) => {
      if (failure === undefined) {
        this.commits = batch.commits
        for (const job of group) job.durable()
      } else for (const job of group) job.failed(failure)
    })
  }

  private prepare(job: WriteJob): boolean {
    const mark = this.batch.mark()
    try {
      job.prepare(this.batch)
      return true
    } catch (error) {
      this.batch.back(mark)
      // A TypeError is a broken invariant of ours; the binding and the port throw others.
      if (error instanceof TypeError) job.broken(error)
      else job.failed(asFailure(error))
      return false
    }
  }

  private send(
    request: WriteRequest | ClearRequest,
    answered: (failure: StorageFailure | undefined) => void
  ): void {
    this.answered = answered
    this.engine?.post(request)
  }

  private answer(reply: WriterReply): void {
    this.settle(reply === undefined ? undefined : asFailure(reply))
  }

  private settle(failure: StorageFailure | undefined): void {
    const answered = this.answered
    this.answered = undefined
    if (failure !== undefined) this.failure ??= failure
    answered?.(failure)
    if (failure !== undefined) this.fail(failure)
    this.next()
  }

  private fail(failure: StorageFailure): void {
    const known = this.failure !== undefined && this.failure !== failure
    this.failure ??= failure
    this.failAll(failure)
    if (!known) this.trouble.onFailure(failure)
  }

  private failAll(failure: StorageFailure): void {
    for (const { failed } of this.jobs.splice(0)) failed(failure)
    for (const { done } of this.clears.splice(0)) done(true)
  }
}

/*
 * The group writer: whatever changes the store joins the next group, and one group at a time is
 * written and flushed beside the event loop. After a failed write every job fails at once
 * until the store has been opened anew (see store.ts).
 */

/** Bytes of the write-ahead logs: what opening anew may have to write into tables. */
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

/** Writes something and flushes it; rejects where that cannot be done. */
const probe = async (dataDir: string): Promise<void> => {
  const path = join(dataDir, "probe")
  try {
    await writeFile(path, Buffer.alloc(probeBytes), { flush: true })
  } finally {
    await rm(path, { force: true })
  }
}

export interface StoreOptions {
  /** It is being filled from an archive by the caller. */
  readonly restoring: boolean
  /** The database that is insisted on. */
  readonly wanted: EngineName | undefined
}

export class EmbeddedStore {
  readonly dataDir: string
  readonly writer: GroupWriter
  private open: Database | undefined = undefined
  private closed = false
  private engineReadsAtOnce = true
  private recoverTimer: NodeJS.Timeout | undefined = undefined
  private recovering: Promise<void> = Promise.resolve()
  private readonly reopenListeners: Array<() => void> = []
  private readonly options: StoreOptions

  constructor(dataDir: string, options: StoreOptions) {
    this.dataDir = dataDir
    this.options = options
    this.writer = new GroupWriter({
      onFailure: (failure) => this.recoverLater(failure, recoverFirstMs)
    })
  }

  /** The open database; throws StorageUnavailable while it is being opened anew. */
  readonly database = (): Database => {
    if (this.open !== undefined) return this.open
    throw new StorageUnavailable({ detail: this.closed ? "the store is closed" : "reopening" })
  }

  /** Whether what belongs together can be read at once: see {@link Database}. */
  get isImmediate(): boolean {
    return this.engineReadsAtOnce
  }

  /** Called after the store was opened anew: what was remembered of it may not hold. */
  onReopened(listener: () => void): void {
    this.reopenListeners.push(listener)
  }

  /** Opens the database and starts the writing thread. Throws what opening fails with. */
  async start(): Promise<void> {
    const { commits, database } = await openVerified(this.dataDir, {
      ...this.options,
      create: true
    })
    this.attach(database, commits)
    if (database.getText(FORMAT_KEY) === undefined) await this.writeFormat()
  }

  /** Finishes what was submitted, and lets go of everything. */
  async stop(): Promise<void> {
    this.closed = true
    clearTimeout(this.recoverTimer)
    await this.recovering
    await this.writer.drained()
    await this.letGo(new StorageUnavailable({ detail: "the store is closed" }))
  }

  /** Fails while the store cannot take commits. */
  health(): StorageFailure | undefined {
    if (this.writer.failing !== undefined) return this.writer.failing
    const free = freeBytes(this.dataDir)
    if (free >= recoverFreeBytesMin) return undefined
    return new StorageFull({ detail: `${free} bytes are left on the disk` })
  }

  /** Submits a change; see {@link WriteJob}. */
  submit<A>(
    prepare: WriteJob["prepare"],
    result: () => A,
    undo?: () => void,
    fetch?: WriteJob["fetch"]
  ): Effect.Effect<A, StorageFailure> {
    return Effect.callback<A, StorageFailure>((resume) => {
      this.writer.submit({
        fetch,
        prepare,
        durable: () => resume(Effect.succeed(result())),
        failed: (failure) => {
          undo?.()
          resume(Effect.fail(failure))
        },
        broken: (defect) => {
          undo?.()
          resume(Effect.die(defect))
        }
      })
    })
  }

  /** Reads of the database; what it throws becomes the port's failure. */
  reading<A>(read: () => A | Promise<A>): Effect.Effect<A, StorageFailure> {
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
    this.engineReadsAtOnce = database.isImmediate
    const acknowledged = acknowledgedPath(this.dataDir)
    this.writer.attach((events) => database.startWriter(acknowledged, events), commits)
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
    if (failure === undefined) return
    await this.stop()
    throw failure
  }

  private async letGo(failure: StorageFailure): Promise<void> {
    await this.writer.detach(failure)
    const database = this.open
    this.open = undefined
    // What cannot be flushed any more was never acknowledged.
    await database?.close().catch(() => undefined)
  }

  /**
   * The database takes no more writes after one that failed, but goes on reading. So it is kept
   * open for readers until there is room, and then closed and opened anew.
   */
  private recoverLater(failure: StorageFailure, pauseMs: number): void {
    if (this.closed) return
    this.recoverTimer = setTimeout(() => {
      this.recovering = this.recover(failure).catch((error: unknown) => {
        const again = error instanceof StorageLocked ? failure : asFailure(error)
        this.recoverLater(again, Math.min(2 * pauseMs, recoverLastMs))
      })
    }, pauseMs)
    this.recoverTimer.unref()
  }

  private async recover(failure: StorageFailure): Promise<void> {
    if (this.closed) return
    const free = freeBytes(this.dataDir)
    if (free < recoverFreeBytesMin + (this.open === undefined ? 0 : logBytes(this.dataDir))) {
      throw failure
    }
    // A disk that takes nothing yet must not cost the readers their database.
    if (this.open !== undefined) await probe(this.dataDir)
    await this.letGo(failure)
    const { commits, database } = await openVerified(this.dataDir, {
      ...this.options,
      create: false
    })
    this.open = database
    for (const listener of this.reopenListeners) listener()
    this.attach(database, commits)
  }
}

/** Opens the store of a folder for as long as the scope. */
export const openStore = (
  dataDir: string,
  options: StoreOptions
): Effect.Effect<EmbeddedStore, OpenFailure, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        await mkdir(dataDir, { recursive: true })
        const store = new EmbeddedStore(dataDir, options)
        await store.start()
        return store
      },
      catch: (error) => openFailure(dataDir, error)
    }),
    (store) => Effect.promise(() => store.stop())
  )
