/**
 * What the embedded store needs from a database: an ordered map of keys to values in one folder,
 * written in flushed batches. `rocksdb.ts` and `leveldb.ts` implement it.
 */
import { StorageCorrupted, type StorageFailure, StorageFull, StorageLocked,
  StorageUnavailable } from "../../actor/index.ts"
import type { BatchChange } from "./write-batch.ts"

/** The databases on which an embedded store runs. */
export const engineNames = ["rocksdb", "leveldb"] as const

/** One of {@link engineNames}. */
export type EngineName = typeof engineNames[number]

/** Names for people. */
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
  /** A read with values ends with the row whose value reaches so many characters, or soon after. */
  readonly charsMax?: number | undefined
}

/** Part of a span: rows, in which keys and values alternate, and whether the span ends there. */
export interface Slice {
  readonly rows: ReadonlyArray<string>
  readonly finished: boolean
}

/** Reads that may belong to one moment. */
export interface EngineSnapshot {
  readonly getTexts: (keys: ReadonlyArray<string>) => ReadonlyArray<string | undefined>
  /** The greatest key of a span, or undefined. */
  readonly lastKey: (gte: string, lt: string) => string | undefined | Promise<string | undefined>
}

/**
 * An open database. Synchronous reads block for a few block reads at most. {@link asFailure}
 * describes what reads throw or reject with.
 */
export interface Database extends EngineSnapshot {
  readonly engine: EngineName
  /** Whether all reads of `withSnapshot` are synchronous. */
  readonly isSynchronous: boolean
  readonly getText: (key: string) => string | undefined
  readonly getBytes: (key: string) => Buffer | undefined
  /**
   * Reads a span, its keys alone unless `values`: synchronously for `sliceMs` or one disk read at
   * most, or all of it as a promise.
   */
  readonly query: (
    span: KeyRange,
    reverse: boolean,
    values: boolean,
    sliceMs: number
  ) => Slice | Promise<ReadonlyArray<string>>
  /**
   * Runs reads on a snapshot. A synchronous database has none: a batch may become visible between
   * two reads of `read`, and the caller has to compare.
   */
  readonly withSnapshot: <A>(read: (view: EngineSnapshot) => A) => A
  /**
   * Writes all of the changes or none, without a flush: a crash keeps a prefix of the writes. One
   * write is in flight at a time, and none while a writer runs.
   */
  readonly write: (changes: ReadonlyArray<BatchChange>) => Promise<void>
  /** Starts the writer; `acknowledged` is the path of the file of that name. */
  readonly startWriter: (acknowledged: string, events: WriterEvents) => EngineWriter
  readonly close: () => Promise<void>
}

/** Writes and flushes the first `length` bytes of a batch; `shared` when its memory changed. */
export interface WriteRequest {
  readonly _tag: "Write"
  readonly length: number
  readonly shared: SharedArrayBuffer | undefined
}

/** Deletes the keys from `gte` up to `lt`, without a flush; idempotent. */
export interface ClearRequest {
  readonly _tag: "Clear"
  readonly gte: string
  readonly lt: string
  readonly limit: number
}

/** The reply to a request: undefined when it succeeded, else the error. */
export type WriterReply = { readonly code: string; readonly message: string } | undefined

export interface WriterEvents {
  /** The request in flight is done: what it wrote is durable. */
  readonly replied: (reply: WriterReply) => void
  /** The writer ended, and replies no more. */
  readonly exited: (detail: string) => void
}

export interface EngineWriter {
  /** One request is in flight at a time. */
  readonly post: (request: WriteRequest | ClearRequest) => void
  /** Flushes the acknowledged count and releases the database; no request is in flight. */
  readonly end: () => Promise<void>
}

/** The innermost error that a binding wraps. */
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
  // The bindings report a full disk in the text of the error only.
  const full = code === "ENOSPC" || code === "EDQUOT" ||
    /No space left on device|Disk quota exceeded|not enough space/.test(detail)
  return full ? new StorageFull({ detail }) : new StorageUnavailable({ detail })
}

/** Whether opening failed because a process has the database open. */
export const isLocked = (error: unknown): boolean =>
  error instanceof StorageLocked || rootOf(error).code === "LEVEL_LOCKED"
