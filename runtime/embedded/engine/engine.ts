/**
 * What the embedded store asks of a database: an ordered map of keys to values in one folder,
 * written in batches that are flushed. `rocksdb.ts` and `leveldb.ts` are the two there are; no
 * other file knows which of them it stands on.
 */
import { StorageCorrupted, type StorageFailure, StorageFull, StorageLocked,
  StorageUnavailable } from "../../actor/index.ts"
import { readSliceMs } from "../../limits.ts"
import type { BatchChange } from "./write-batch.ts"

export const engineNames = ["rocksdb", "leveldb"] as const

/** Which database. */
export type EngineName = typeof engineNames[number]

/** What each is called among people. */
export const engineTitles: Readonly<Record<EngineName, string>> = {
  rocksdb: "RocksDB",
  leveldb: "LevelDB"
}

/** A span of keys: `gte` or `gt` up to `lt`. */
export interface KeyRange {
  readonly gte?: string
  readonly gt?: string
  readonly lt: string | Buffer
  readonly limit: number
}

/** Part of a span: keys and values in turn, and whether there are no more of them. */
export interface Slice {
  readonly rows: ReadonlyArray<string>
  readonly finished: boolean
}

/** Reads of one moment. */
export interface EngineSnapshot {
  readonly getTexts: (keys: ReadonlyArray<string>) => ReadonlyArray<string | undefined>
  /** The greatest key of a span, or undefined. */
  readonly lastKey: (gte: string, lt: string) => string | undefined | Promise<string | undefined>
}

/**
 * An open database. What is read at once blocks for a few block reads at most; what it throws or
 * rejects with, see {@link asFailure}.
 */
export interface Database extends EngineSnapshot {
  readonly engine: EngineName
  /** Whether all that `atOnce` is given can be read without waiting. */
  readonly isImmediate: boolean
  readonly getText: (key: string) => string | undefined
  readonly getBytes: (key: string) => Buffer | undefined
  /**
   * Reads a span, its keys alone unless `values`: at once, and then for `sliceMs` or one disk read
   * at most, or all of it in due course.
   */
  readonly query: (
    span: KeyRange,
    reverse: boolean,
    values: boolean,
    sliceMs: number
  ) => Slice | Promise<ReadonlyArray<string>>
  /**
   * Reads what belongs together. Where a batch may become visible between two reads of `read`, all
   * the same, `isImmediate` is true and the reader has to look again.
   */
  readonly atOnce: <A>(read: (view: EngineSnapshot) => A) => A
  /**
   * All of the changes or none, without a flush: of several writes a crash leaves the first ones.
   * One is under way at a time, and none beside a writer.
   */
  readonly write: (changes: ReadonlyArray<BatchChange>) => Promise<void>
  /** Starts what writes; `acknowledged` is the file of that name. */
  readonly startWriter: (acknowledged: string, events: WriterEvents) => EngineWriter
  readonly close: () => Promise<void>
}

/** Writes the first `length` bytes of a batch (see batch.ts); `shared` when it is another one. */
export interface WriteRequest {
  readonly _tag: "Write"
  readonly length: number
  readonly shared: SharedArrayBuffer | undefined
}

/** Deletes the keys from `gte` up to `lt`; not flushed by itself, and may be repeated. */
export interface ClearRequest {
  readonly _tag: "Clear"
  readonly gte: string
  readonly lt: string
  readonly limit: number
}

/** The answer to each request: undefined when it succeeded, or why not. */
export type WriterReply = { readonly code: string; readonly message: string } | undefined

export interface WriterEvents {
  /** The one request under way is done: what was written is durable. */
  readonly answered: (reply: WriterReply) => void
  /** It will answer nothing any more. */
  readonly lost: (detail: string) => void
}

export interface EngineWriter {
  /** Not to be called again before this request was answered. */
  readonly post: (request: WriteRequest | ClearRequest) => void
  /** Flushes what was acknowledged and lets go of the database; nothing is under way. */
  readonly end: () => Promise<void>
}

/** The innermost error of those that a binding wraps. */
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

/** An error of a binding or of a file operation, as the port's failure. */
export const asFailure = (error: unknown): StorageFailure => {
  if (
    error instanceof StorageCorrupted || error instanceof StorageFull ||
    error instanceof StorageUnavailable
  ) return error
  const { code, detail } = rootOf(error)
  if (code === "LEVEL_CORRUPTION") return new StorageCorrupted({ detail })
  // The bindings tell a full disk from other errors by its text alone.
  const full = code === "ENOSPC" || code === "EDQUOT" ||
    /No space left on device|Disk quota exceeded|not enough space/.test(detail)
  return full ? new StorageFull({ detail }) : new StorageUnavailable({ detail })
}

/** Whether opening failed since another process, or this one, has the database open. */
export const isLocked = (error: unknown): boolean =>
  error instanceof StorageLocked || rootOf(error).code === "LEVEL_LOCKED"

/** The least key of a span, or undefined. */
export const firstKey = async (
  opened: () => Database,
  span: Omit<KeyRange, "limit">
): Promise<string | undefined> => (await readSpan(opened, { ...span, limit: 1 }, false, false))[0]

/**
 * Reads a span in slices, so that a cold disk does not hold up the event loop: keys and values in
 * turn. `opened` is asked anew for the database at each slice.
 */
export const readSpan = (
  opened: () => Database,
  span: KeyRange,
  reverse: boolean,
  values = true
): ReadonlyArray<string> | Promise<ReadonlyArray<string>> => {
  const first = opened().query(span, reverse, values, readSliceMs)
  if (first instanceof Promise) return first
  if (first.finished || first.rows.length >= 2 * span.limit) return first.rows
  return readOn(opened, span, reverse, values, [...first.rows])
}

const readOn = async (
  opened: () => Database,
  span: KeyRange,
  reverse: boolean,
  values: boolean,
  rows: Array<string>
): Promise<ReadonlyArray<string>> => {
  let sliceMs = readSliceMs
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve))
    const from = rows.at(-2)
    const lower = reverse || from === undefined ? lowerOf(span) : { gt: from }
    const lt = reverse && from !== undefined ? from : span.lt
    const rest = { ...lower, lt, limit: span.limit - rows.length / 2 }
    const slice = opened().query(rest, reverse, values, sliceMs)
    if (slice instanceof Promise) return [...rows, ...await slice]
    for (const row of slice.rows) rows.push(row)
    if (slice.finished || rows.length >= 2 * span.limit) return rows
    // A slice that brought nothing must not be repeated as it was.
    if (slice.rows.length === 0) sliceMs *= 2
  }
}

const lowerOf = ({ gt, gte }: KeyRange): Pick<KeyRange, "gt" | "gte"> => ({
  ...(gt === undefined ? {} : { gt }),
  ...(gte === undefined ? {} : { gte })
})
