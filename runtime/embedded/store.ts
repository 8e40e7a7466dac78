/**
 * The embedded store: one open RocksDB, its writing thread and its guards, shared by the storage,
 * record and blob ports. See this folder's README for keys and guarantees.
 */
import { readdirSync, readFileSync, statfsSync, statSync, writeFileSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { SHARDS } from "../address.ts"
import {
  StorageDamaged,
  type StorageFailure,
  StorageFull,
  StorageLocked,
  StorageUnavailable
} from "../errors.ts"
import { acknowledgedPath, createAcknowledged, readAcknowledged } from "./acknowledged.ts"
import { COMMITS_KEY, FORMAT_KEY } from "./keys.ts"
import { RECOVER_FIRST_MS, RECOVER_FREE_BYTES_MIN, RECOVER_LAST_MS } from "./limits.ts"
import { assertWhole } from "./restoring.ts"
import { asFailure, getTexts, openRocksdb, type RocksDatabase, rootOf } from "./rocksdb.ts"
import { startWorker } from "./worker.ts"
import { type Job, Writer } from "./writer.ts"

/** Version of the keys and values; another one is not read. */
const VERSION = 1
const FORMAT = JSON.stringify({ version: VERSION, shards: SHARDS })

export const databasePath = (dataDir: string): string => join(dataDir, "store")
const lockPath = (dataDir: string): string => join(dataDir, "lock")

const holderOf = (dataDir: string): number | undefined => {
  try {
    const pid = Number(readFileSync(lockPath(dataDir), "utf8"))
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}

export type OpenFailure = StorageFailure | StorageLocked

/** An error of opening: whatever is not a full disk or a lock means that parts do not fit. */
const openFailure = (dataDir: string, error: unknown): OpenFailure => {
  const { code, detail } = rootOf(error)
  if (code === "LEVEL_LOCKED") return new StorageLocked({ path: dataDir, pid: holderOf(dataDir) })
  const failure = asFailure(error)
  // RocksDB calls a table or manifest that is gone an input/output error, by its text alone.
  const lost = /No such file|Corruption|does not exist/.test(detail)
  return failure._tag === "StorageUnavailable" && lost ? new StorageDamaged({ detail }) : failure
}

const damaged = (detail: string): never => {
  throw new StorageDamaged({ detail })
}

/** The count of commits, after comparing what is there with what was acknowledged. */
const verifiedCommits = (dataDir: string, database: RocksDatabase): number => {
  const [format, count] = getTexts(database, FORMAT_KEY, COMMITS_KEY)
  const acknowledged = readAcknowledged(dataDir)
  const commits = Number(count ?? 0)
  if (acknowledged === null) damaged("the file `acknowledged` is unreadable")
  else if (acknowledged !== undefined && commits < acknowledged) {
    damaged(
      "the log was cut or damaged: it holds " +
        `${commits} of ${acknowledged} acknowledged commits`
    )
  } else if (acknowledged === undefined && count !== undefined) {
    damaged("the file `acknowledged` is missing: the log cannot be verified")
  }
  if (format !== undefined && format !== FORMAT) {
    throw new StorageUnavailable({ detail: `the store is of another format: ${format}` })
  }
  if (format === undefined && count !== undefined) damaged("the store's format is missing")
  return commits
}

/**
 * Opens and verifies the database of `dataDir`. Throws what opening fails with; StorageDamaged also
 * for a store that was restored in part, unless it is just being restored.
 */
export const openVerified = async (
  dataDir: string,
  createIfMissing: boolean,
  restoring = false
): Promise<{ readonly database: RocksDatabase; readonly commits: number }> => {
  if (!restoring) assertWhole(dataDir)
  // Where commits were counted there was a database: making a new one would delete what is left.
  const create = createIfMissing && readAcknowledged(dataDir) === undefined
  const database = await openRocksdb(databasePath(dataDir), create).catch((error: unknown) => {
    throw openFailure(dataDir, error)
  })
  try {
    writeFileSync(lockPath(dataDir), String(process.pid))
    const commits = verifiedCommits(dataDir, database)
    if (readAcknowledged(dataDir) === undefined) createAcknowledged(dataDir)
    return { database, commits }
  } catch (error) {
    await database.close()
    throw openFailure(dataDir, error)
  }
}

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

export class EmbeddedStore {
  readonly dataDir: string
  readonly writer: Writer
  private open: RocksDatabase | undefined = undefined
  private closed = false
  private recoverTimer: NodeJS.Timeout | undefined = undefined
  private recovering: Promise<void> = Promise.resolve()
  private readonly reopenListeners: Array<() => void> = []
  private readonly restoring: boolean

  constructor(dataDir: string, restoring: boolean) {
    this.dataDir = dataDir
    this.restoring = restoring
    this.writer = new Writer({
      onFailure: (failure) => this.recoverLater(failure, RECOVER_FIRST_MS)
    })
  }

  /** The open database; throws StorageUnavailable while it is being opened anew. */
  readonly database = (): RocksDatabase => {
    if (this.open !== undefined) return this.open
    throw new StorageUnavailable({ detail: this.closed ? "the store is closed" : "reopening" })
  }

  /** Called after the store was opened anew: what was remembered of it may not hold. */
  onReopened(listener: () => void): void {
    this.reopenListeners.push(listener)
  }

  /** Opens the database and starts the writing thread. Throws what opening fails with. */
  async start(): Promise<void> {
    const { commits, database } = await openVerified(this.dataDir, true, this.restoring)
    this.open = database
    this.writer.attach(startWorker(database.handle, acknowledgedPath(this.dataDir)), commits)
    if (getTexts(database, FORMAT_KEY)[0] === undefined) await this.writeFormat()
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
    if (free >= RECOVER_FREE_BYTES_MIN) return undefined
    return new StorageFull({ detail: `${free} bytes are left on the disk` })
  }

  /** Submits a change; see {@link Job}. */
  submit<A>(
    prepare: Job["prepare"],
    result: () => A,
    undo?: () => void
  ): Effect.Effect<A, StorageFailure> {
    return Effect.callback<A, StorageFailure>((resume) => {
      this.writer.submit({
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
   * RocksDB takes no more writes after one that failed, but goes on reading. So it is kept open
   * for readers until there is room, and then closed and opened anew.
   */
  private recoverLater(failure: StorageFailure, pauseMs: number): void {
    if (this.closed) return
    this.recoverTimer = setTimeout(() => {
      this.recovering = this.recover(failure).catch((error: unknown) => {
        const again = error instanceof StorageLocked ? failure : asFailure(error)
        this.recoverLater(again, Math.min(2 * pauseMs, RECOVER_LAST_MS))
      })
    }, pauseMs)
    this.recoverTimer.unref()
  }

  private async recover(failure: StorageFailure): Promise<void> {
    if (this.closed) return
    const free = freeBytes(this.dataDir)
    if (free < RECOVER_FREE_BYTES_MIN + (this.open === undefined ? 0 : logBytes(this.dataDir))) {
      throw failure
    }
    await this.letGo(failure)
    const { commits, database } = await openVerified(this.dataDir, false, this.restoring)
    this.open = database
    for (const listener of this.reopenListeners) listener()
    this.writer.attach(startWorker(database.handle, acknowledgedPath(this.dataDir)), commits)
  }
}

/** Opens the store of a folder for as long as the scope. */
export const openStore = (
  dataDir: string,
  restoring = false
): Effect.Effect<EmbeddedStore, OpenFailure, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        await mkdir(dataDir, { recursive: true })
        const store = new EmbeddedStore(dataDir, restoring)
        await store.start()
        return store
      },
      catch: (error) => error instanceof StorageLocked ? error : openFailure(dataDir, error)
    }),
    (store) => Effect.promise(() => store.stop())
  )
