/**
 * The part of `@nxtedition/rocksdb` that is used here, typed. The binding has no types of its
 * own, and what is synchronous in it blocks the calling thread.
 */
import { createRequire } from "node:module"
import { StorageDamaged, type StorageFailure, StorageFull, StorageUnavailable } from "../errors.ts"
import { BLOCK_CACHE_BYTES, MEMTABLE_BYTES, READ_SLICE_MS } from "./limits.ts"

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
  readonly keyEncoding: "utf8"
  readonly valueEncoding: "utf8"
}

/** An open database. */
export interface RocksDatabase {
  readonly open: (options: object) => Promise<void>
  readonly close: () => Promise<void>
  /** Shares the open database with another thread of this process. */
  readonly handle: bigint
  readonly querySync: (
    options: QueryOptions
  ) => { readonly rows: ReadonlyArray<string>; readonly finished: boolean }
  readonly _getManySync: {
    (keys: ReadonlyArray<Buffer>, options: { readonly valueEncoding: "utf8" }): ReadonlyArray<
      string | undefined
    >
    (keys: ReadonlyArray<Buffer>, options: object): ReadonlyArray<Buffer | undefined>
  }
}

const require = createRequire(import.meta.url)

/** Where the binding is, for the thread that writes. */
export const bindingPath: string = require.resolve("@nxtedition/rocksdb")

const openOptions = {
  // Each group is synced; compressing it costs more than the bytes it saves.
  walCompression: false,
  // The deeper levels are compressed all the same, without a dictionary trained for each table:
  // that took half of the time of compaction.
  compression: false,
  compaction: "level",
  memtableMemoryBudget: MEMTABLE_BYTES,
  cacheSize: BLOCK_CACHE_BYTES,
  parallelism: 2
}

/** Opens the database in a folder. Rejects with the binding's own error. */
export const openRocksdb = async (
  path: string,
  createIfMissing: boolean
): Promise<RocksDatabase> => {
  // The binding is CommonJS without types; this is the one place where it gets them.
  const { RocksLevel } = require(bindingPath) as {
    readonly RocksLevel: new(path: string) => RocksDatabase
  }
  const database = new RocksLevel(path)
  await database.open({ ...openOptions, createIfMissing })
  return database
}

/** The innermost error of those that the binding wraps. */
export const rootOf = (error: unknown): { readonly code: string; readonly detail: string } => {
  if (!(error instanceof Error)) {
    if (typeof error === "object" && error !== null && "message" in error) {
      const code = "code" in error ? String(error.code) : ""
      return { code, detail: String(error.message) }
    }
    return { code: "", detail: String(error) }
  }
  if (error.cause !== undefined) return rootOf(error.cause)
  return { code: "code" in error ? String(error.code) : "", detail: error.message }
}

/** An error of the binding or of a file operation, as the port's failure. */
export const asFailure = (error: unknown): StorageFailure => {
  if (
    error instanceof StorageDamaged || error instanceof StorageFull ||
    error instanceof StorageUnavailable
  ) return error
  const { code, detail } = rootOf(error)
  if (code === "LEVEL_CORRUPTION") return new StorageDamaged({ detail })
  // The binding tells a full disk from other errors by its text alone.
  const full = code === "ENOSPC" || code === "EDQUOT" ||
    /No space left on device|Disk quota exceeded/.test(detail)
  return full ? new StorageFull({ detail }) : new StorageUnavailable({ detail })
}

const UTF8 = {
  keyEncoding: "utf8",
  valueEncoding: "utf8",
  fillCache: true,
  asyncIO: false
} as const

/** The binding counts in 32 bits. */
const LIMIT_MAX = 2 ** 31 - 1

/** A span of keys: `gte` or `gt` up to `lt`. */
export interface Span {
  readonly gte?: string
  readonly gt?: string
  readonly lt: string | Buffer
  readonly limit: number
}

/** One text, or undefined. Blocks for a few block reads at most. */
export const getText = (database: RocksDatabase, key: string): string | undefined =>
  database._getManySync([Buffer.from(key)], { valueEncoding: "utf8" })[0]

export const getTexts = (
  database: RocksDatabase,
  ...keys: ReadonlyArray<string>
): ReadonlyArray<string | undefined> =>
  database._getManySync(keys.map((key) => Buffer.from(key)), { valueEncoding: "utf8" })

export const getBytes = (database: RocksDatabase, key: string): Buffer | undefined =>
  database._getManySync([Buffer.from(key)], {})[0]

/** The greatest key of a span, or undefined. */
export const lastKey = (database: RocksDatabase, gte: string, lt: string): string | undefined =>
  database.querySync({ ...UTF8, gte, lt, reverse: true, limit: 1, values: false }).rows[0]

/** The least key of a span, or undefined. */
export const firstKey = (database: RocksDatabase, span: Omit<Span, "limit">): string | undefined =>
  database.querySync({ ...UTF8, ...span, limit: 1, values: false }).rows[0]

/**
 * Reads a span in slices, each of {@link READ_SLICE_MS} or the time of one disk read, so that a
 * cold disk does not hold up the event loop: keys and values in turn. `opened` is asked anew for
 * the database at each slice.
 */
export const readSpan = (
  opened: () => RocksDatabase,
  span: Span,
  reverse: boolean,
  values = true
): ReadonlyArray<string> | Promise<ReadonlyArray<string>> => {
  const limit = Math.min(span.limit, LIMIT_MAX)
  const first = opened().querySync({
    ...UTF8,
    ...span,
    limit,
    reverse,
    values,
    timeout: READ_SLICE_MS
  })
  if (first.finished || first.rows.length >= 2 * span.limit) return first.rows
  return readOn(opened, span, reverse, values, [...first.rows])
}

const readOn = async (
  opened: () => RocksDatabase,
  span: Span,
  reverse: boolean,
  values: boolean,
  rows: Array<string>
): Promise<ReadonlyArray<string>> => {
  let sliceMs = READ_SLICE_MS
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve))
    const from = rows.at(-2)
    const limit = Math.min(span.limit - rows.length / 2, LIMIT_MAX)
    const lower = reverse || from === undefined ? lowerOf(span) : { gt: from }
    const lt = reverse && from !== undefined ? from : span.lt
    const options = { ...UTF8, ...lower, lt, limit, reverse, values, timeout: sliceMs }
    const slice = opened().querySync(options)
    for (const row of slice.rows) rows.push(row)
    if (slice.finished || rows.length >= 2 * span.limit) return rows
    // A slice that brought nothing must not be repeated as it was.
    if (slice.rows.length === 0) sliceMs *= 2
  }
}

const lowerOf = ({ gt, gte }: Span): Pick<Span, "gt" | "gte"> => ({
  ...(gt === undefined ? {} : { gt }),
  ...(gte === undefined ? {} : { gte })
})
