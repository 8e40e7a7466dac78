/** RocksDB, by `@nxtedition/rocksdb`: the binding has no types, so this file declares them. */
import { createRequire } from "node:module"
import { blockCacheBytes, memtableBytes } from "../../limits.ts"
import type { Database, EngineSnapshot, KeyRange, Slice } from "./engine.ts"
import { assertReadable } from "./rocksdb-log.ts"
import { type RocksBatch, startThread } from "./rocksdb-writer.ts"
import type { BatchChange } from "./write-batch.ts"

interface QueryOptions {
  readonly gte?: string | Buffer
  readonly gt?: string | Buffer
  readonly lt?: string | Buffer
  readonly reverse?: boolean
  readonly limit?: number
  readonly keys?: boolean
  readonly values?: boolean
  readonly fillCache?: boolean
  readonly asyncIO?: boolean
  readonly timeout?: number
  /** The read ends with the row that exceeds it. */
  readonly highWaterMarkBytes?: number
  readonly keyEncoding: "utf8"
  readonly valueEncoding: "utf8"
}

interface Native {
  readonly batch: () => RocksBatch
  readonly open: (options: object) => Promise<void>
  readonly close: () => Promise<void>
  /** Shares the open database with another thread of this process. */
  readonly handle: bigint
  readonly querySync: (options: QueryOptions) => Slice
  readonly _getManySync: {
    (keys: ReadonlyArray<Buffer>, options: { readonly valueEncoding: "utf8" }): ReadonlyArray<
      string | undefined
    >
    (keys: ReadonlyArray<Buffer>, options: object): ReadonlyArray<Buffer | undefined>
  }
}

type Binding = { readonly RocksLevel: new(path: string) => Native }

const require = createRequire(import.meta.url)

/** The path of the binding, for the writer thread. */
const bindingPath = (): string => require.resolve("@nxtedition/rocksdb")

/** Loads the binding; throws where it has no binary that runs. */
export const loadRocksdb = (): Binding =>
  // A CommonJS module without types.
  require(bindingPath()) as Binding

const openOptions = {
  // Each group is flushed: compressing it costs more time than the saved bytes.
  walCompression: false,
  // The binding compresses deeper levels anyway. Training a dictionary for each table took half
  // of the time of compaction.
  compression: false,
  compaction: "level",
  cacheSize: blockCacheBytes,
  parallelism: 2
}

const UTF8 = {
  keyEncoding: "utf8",
  valueEncoding: "utf8",
  fillCache: true,
  asyncIO: false
} as const

/** The binding's `timeout` of a read without a deadline. */
const NO_DEADLINE = 0

/** The binding counts rows and bytes in 32 bits. */
const COUNT_MAX = 2 ** 31 - 1

class RocksDatabase implements Database {
  readonly engine = "rocksdb"
  readonly isSynchronous = true
  private readonly native: Native
  /** Reused by all writes. */
  private batch: RocksBatch | undefined

  constructor(native: Native) {
    this.native = native
  }

  getText(key: string): string | undefined {
    return this.native._getManySync([Buffer.from(key)], { valueEncoding: "utf8" })[0]
  }

  getTexts(keys: ReadonlyArray<string>): ReadonlyArray<string | undefined> {
    return this.native._getManySync(keys.map((key) => Buffer.from(key)), { valueEncoding: "utf8" })
  }

  getBytes(key: string): Buffer | undefined {
    return this.native._getManySync([Buffer.from(key)], {})[0]
  }

  lastKey(gte: string, lt: string): string | undefined {
    // A slice that timed out before its first key would look like an empty log.
    const { rows } = this.query({ gte, lt, limit: 1 }, true, false, NO_DEADLINE)
    return rows[0]
  }

  query(
    { charsMax = COUNT_MAX, ...span }: KeyRange,
    reverse: boolean,
    values: boolean,
    timeout: number
  ): Slice {
    const limit = Math.min(span.limit, COUNT_MAX)
    // A character has a byte at least.
    const highWaterMarkBytes = Math.min(charsMax, COUNT_MAX)
    const bounds = { ...span, limit, highWaterMarkBytes }
    return this.native.querySync({ ...UTF8, ...bounds, reverse, values, timeout })
  }

  withSnapshot<A>(read: (view: EngineSnapshot) => A): A {
    return read(this)
  }

  /** In the calling thread: an unflushed write takes as long as a copy. */
  async write(changes: ReadonlyArray<BatchChange>): Promise<void> {
    const batch = this.batch ??= this.native.batch()
    const options = {}
    batch._clear()
    for (const change of changes) {
      if (change.type === "del") batch._del(change.key, options)
      else batch._put(change.key, change.value, options)
    }
    batch._writeSync({ sync: false })
  }

  startWriter(...[acknowledged, events]: Parameters<Database["startWriter"]>) {
    return startThread(bindingPath(), this.native.handle, acknowledged, events)
  }

  close(): Promise<void> {
    this.batch?._closeSync()
    this.batch = undefined
    return this.native.close()
  }
}

/**
 * Opens the database in a folder. Rejects with the binding's own error, or with StorageCorrupted
 * when RocksDB would read a log forever.
 */
export const openRocksdb = async (
  path: string,
  createIfMissing: boolean,
  memtableMemoryBudget = memtableBytes
): Promise<Database> => {
  const { RocksLevel } = loadRocksdb()
  assertReadable(path)
  const native = new RocksLevel(path)
  await native.open({ ...openOptions, memtableMemoryBudget, createIfMissing })
  return new RocksDatabase(native)
}
