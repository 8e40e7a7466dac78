/**
 * The embedded store: one open database, what writes to it and its guards, shared by the storage,
 * record and blob ports. See this folder's README for keys and guarantees.
 */
import { readdirSync, statfsSync, statSync } from "node:fs"
import { mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { type StorageFailure, StorageFull, StorageLocked, StorageUnavailable } from "../errors.ts"
import { acknowledgedPath } from "./acknowledged.ts"
import { asFailure, type Database, type EngineName } from "./engine.ts"
import { databasePath } from "./engines.ts"
import { FORMAT_KEY } from "./keys.ts"
import { probeBytes, recoverFirstMs, recoverFreeBytesMin, recoverLastMs } from "./limits.ts"
import { FORMAT, type OpenFailure, openFailure, openVerified } from "./opening.ts"
import { GroupWriter, type WriteJob } from "./writer.ts"

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
