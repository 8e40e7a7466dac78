/**
 * LevelDB, by `classic-level`, where the binding of RocksDB has no binary. Single keys are read
 * synchronously; the threads of libuv read spans and write. `leveldb-files.ts` verifies the folder.
 */
import type { ClassicLevel, Snapshot } from "classic-level"
import { closeSync, existsSync, fdatasync, openSync, write } from "node:fs"
import { promisify } from "node:util"
import { StorageCorrupted } from "../../actor/index.ts"
import { acknowledgedSyncMs, blockCacheBytes, leveldbBufferBytes, leveldbChunkBytes,
  leveldbChunkRows, leveldbTableBytes } from "../../limits.ts"
import { syncFolder } from "../folders.ts"
import { ACKNOWLEDGEMENT_BYTES, SLOTS } from "./acknowledgement.ts"
import { type ClearRequest, type Database, type EngineSnapshot, type EngineWriter, type KeyRange,
  rootOf, type WriteRequest, type WriterEvents } from "./engine.ts"
import { fileStateOf, logGap, tableFault, truncatedTables,
  type VerifiedTables } from "./leveldb-files.ts"
import { type BatchChange, changesOf } from "./write-batch.ts"

type Native = ClassicLevel<string, string>

/** Keys are text; the bounds of a span may be bytes. */
const textOrBytes = {
  name: "text-or-bytes",
  format: "utf8",
  encode: (key: string | Buffer): string => key as string, // the binding takes either
  decode: (key: string): string => key
} as const

const openOptions = {
  cacheSize: blockCacheBytes,
  writeBufferSize: leveldbBufferBytes,
  maxFileSize: leveldbTableBytes
}

/** Before every key; after each there is `lt`. */
const BEFORE_ALL = Buffer.from([0])

class LevelDatabase implements Database {
  readonly engine = "leveldb"
  readonly isSynchronous = false
  private readonly native: Native

  constructor(native: Native) {
    this.native = native
  }

  getText(key: string): string | undefined {
    return this.native.getSync(key)
  }

  getTexts(keys: ReadonlyArray<string>): ReadonlyArray<string | undefined> {
    return keys.length < 2
      ? keys.map((key) => this.native.getSync(key))
      : this.withSnapshot((view) => view.getTexts(keys))
  }

  getBytes(key: string): Buffer | undefined {
    return this.native.getSync<string, Buffer>(key, {
      keyEncoding: "utf8",
      valueEncoding: "buffer"
    })
  }

  lastKey(gte: string, lt: string): Promise<string | undefined> {
    return this.lastOf(gte, lt, undefined)
  }

  query(span: KeyRange, reverse: boolean, values: boolean): Promise<ReadonlyArray<string>> {
    return this.rows(span, reverse, values, undefined)
  }

  withSnapshot<A>(read: (view: EngineSnapshot) => A): A {
    const { native } = this
    const snapshot = native.snapshot()
    const close = () => snapshot.close()
    let result: A | undefined
    try {
      result = read({
        getTexts: (keys) =>
          keys.map((key) =>
            native.getSync<string, string>(key, {
              keyEncoding: "utf8",
              valueEncoding: "utf8",
              snapshot
            })
          ),
        lastKey: (gte, lt) => this.lastOf(gte, lt, snapshot)
      })
      return result
    } finally {
      if (result instanceof Promise) void result.then(close, close)
      else void close()
    }
  }

  write(changes: ReadonlyArray<BatchChange>): Promise<void> {
    return this.native.batch<Buffer, Buffer>([...changes], {
      sync: false,
      keyEncoding: "buffer",
      valueEncoding: "buffer"
    })
  }

  startWriter(...[acknowledged, events]: Parameters<Database["startWriter"]>) {
    return new LeveldbWriter(this.native, acknowledged, events)
  }

  close(): Promise<void> {
    return this.native.close()
  }

  private async lastOf(gte: string, lt: string, snapshot: Snapshot | undefined) {
    const [key] = await this.rows({ gte, lt, limit: 1 }, true, false, snapshot)
    return key
  }

  private async rows(
    { charsMax = Infinity, limit, ...bounds }: KeyRange,
    reverse: boolean,
    values: boolean,
    snapshot: Snapshot | undefined
  ): Promise<ReadonlyArray<string>> {
    const iterator = this.native.iterator<string | Buffer, string>({
      ...bounds,
      reverse,
      values,
      keyEncoding: textOrBytes,
      valueEncoding: "utf8",
      highWaterMarkBytes: leveldbChunkBytes,
      snapshot
    })
    const rows: Array<string> = []
    let chars = 0
    try {
      while (rows.length < 2 * limit && chars < charsMax) {
        const size = Math.min(limit - rows.length / 2, leveldbChunkRows)
        const entries = await iterator.nextv(size)
        if (entries.length === 0) break
        for (const [key, value] of entries) {
          rows.push(String(key), value ?? "")
          chars += value?.length ?? 0
        }
      }
      if (rows.length < 2 * limit && chars < charsMax) return rows
      // LevelDB skips blocks that it cannot read, and reports them at the end of a span only.
      iterator.seek(reverse ? BEFORE_ALL : bounds.lt)
      await iterator.next()
      return rows
    } finally {
      await iterator.close()
    }
  }
}

const writeAt = promisify(write)

/** Writes each group as a batch with a flush, and the count of commits after it. */
class LeveldbWriter implements EngineWriter {
  private readonly native: Native
  private readonly file: number
  private readonly events: WriterEvents
  private bytes: Buffer = Buffer.alloc(0)
  private turn = 0
  private syncTimer: NodeJS.Timeout | undefined = undefined
  /** A flush of the count that is under way. */
  private syncing: Promise<void> | undefined = undefined

  constructor(native: Native, acknowledged: string, events: WriterEvents) {
    this.native = native
    this.file = openSync(acknowledged, "r+")
    this.events = events
  }

  post(request: WriteRequest | ClearRequest): void {
    const done = request._tag === "Write" ? this.write(request) : this.clear(request)
    done.then(
      () => this.events.replied(undefined),
      (error: unknown) => {
        const { code, detail } = rootOf(error)
        this.events.replied({ code, message: detail })
      }
    )
  }

  async end(): Promise<void> {
    clearTimeout(this.syncTimer)
    await this.syncing
    // A failure loses nothing: the commits are durable already.
    await new Promise<void>((resolve) => fdatasync(this.file, () => resolve()))
    closeSync(this.file)
  }

  private async write({ length, shared }: WriteRequest): Promise<void> {
    if (shared !== undefined) this.bytes = Buffer.from(shared)
    const changes = changesOf(this.bytes, ACKNOWLEDGEMENT_BYTES, length)
    await this.native.batch<Buffer, Buffer>(changes, {
      sync: true,
      keyEncoding: "buffer",
      valueEncoding: "buffer"
    })
    const slot = SLOTS[this.turn++ % SLOTS.length] ?? 0
    await writeAt(this.file, this.bytes, 0, ACKNOWLEDGEMENT_BYTES, slot).catch(() => undefined)
    this.syncTimer ??= setTimeout(() => {
      this.syncTimer = undefined
      this.syncing = new Promise((resolve) => fdatasync(this.file, () => resolve()))
    }, acknowledgedSyncMs)
  }

  private clear({ gte, limit, lt }: ClearRequest): Promise<void> {
    return this.native.clear({ gte, lt, limit })
  }
}

/**
 * Opens the database in a folder. Rejects with the binding's own error, or with StorageCorrupted
 * when its logs have a gap or a table is truncated or has a wrong checksum.
 */
export const openLeveldb = async (
  path: string,
  createIfMissing: boolean,
  verified?: VerifiedTables,
  flushFolder = syncFolder
): Promise<Database> => {
  const { ClassicLevel } = await import("classic-level")
  const isThere = existsSync(path)
  const gap = isThere ? logGap(path) : undefined
  // Another process may begin a log while this process reads the logs, so it reads them twice.
  if (gap !== undefined && logGap(path) === gap) throw new StorageCorrupted({ detail: gap })
  const fault = isThere ? await tableFault(path, verified) : undefined
  if (fault !== undefined) throw new StorageCorrupted({ detail: fault })
  const truncated = isThere ? truncatedTables(path) : new Map<string, string>()
  const native: Native = new ClassicLevel(path)
  await native.open({ ...openOptions, createIfMissing })
  try {
    // LevelDB has removed the tables that a crash left incomplete. It needs any other one.
    for (const [table, state] of truncated) {
      if (fileStateOf(table) !== state) continue
      throw new StorageCorrupted({ detail: `${table} is truncated` })
    }
    // LevelDB has renamed the file CURRENT since the last flush of the folder.
    await flushFolder(path)
  } catch (error) {
    // A database that stays open has the lock of its folder: no later attempt could open it.
    await native.close()
    throw error
  }
  return new LevelDatabase(native)
}
