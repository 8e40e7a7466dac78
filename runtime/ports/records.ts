/**
 * The record port: ordered tables beside the actors, for indexes and queries. The contract is the
 * suite `test/suites/records.ts`.
 */
import { Context, type Effect } from "effect"
import type { StorageFailure } from "../actor/index.ts"

/** Compares keys by their UTF-8 bytes, that is, by code point; JavaScript compares UTF-16 units. */
export const byBytes = (one: string, other: string): number => {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at++) {
    const a = one.charCodeAt(at)
    const b = other.charCodeAt(at)
    if (a === b) continue
    // Surrogates encode the greatest code points.
    const aHigh = a >= 0xd800 && a <= 0xdfff
    const bHigh = b >= 0xd800 && b <= 0xdfff
    return aHigh === bHigh ? a - b : aHigh ? 1 : -1
  }
  return one.length - other.length
}

/** A change of one record: its new value, or its deletion. */
export interface RecordChange {
  /** `[a-z][a-z-]*`. */
  readonly table: string
  /** Any text without U+0000; compared by its UTF-8 bytes. */
  readonly key: string
  /** null deletes the record. */
  readonly value: string | null
  /**
   * For a deletion: its marker (tombstone) may expire. A server that was killed may then still
   * have the record. So a reader checks the record with its actor, or deletes it again.
   */
  readonly markerExpires?: boolean
}

/** A record of a table. */
export interface RecordEntry {
  readonly key: string
  readonly value: string
}

/** Which records of a table to read: in the order of their keys, `limit` at most. */
export interface RecordRange {
  /** Only keys with this prefix. */
  readonly prefix?: string
  /** Only keys after this one (before it with `reverse`). */
  readonly after?: string
  /** Descending by key; ascending by default. */
  readonly reverse?: boolean
  readonly limit: number
}

/** Ordered tables of texts beside the actors, as {@link Records} provides them. */
export interface RecordsApi {
  /** Greatest number of changes in one write. */
  readonly changesMax: number
  /**
   * Makes all changes durable, or none. A write that fails may have been kept, or may be kept
   * within the next minute, unless the failure is ValueTooLarge.
   */
  readonly write: (changes: ReadonlyArray<RecordChange>) => Effect.Effect<void, StorageFailure>
  /**
   * Compare-and-set: as `write` if each of `expected` still has its value (null: does not exist);
   * otherwise changes nothing and returns false. Each expected key must be among the changes.
   * Comparing and writing are one atomic step for all writers on all nodes.
   */
  readonly writeIf: (
    expected: ReadonlyArray<RecordChange>,
    changes: ReadonlyArray<RecordChange>
  ) => Effect.Effect<boolean, StorageFailure>
  /** The value of a record; undefined where there is none. */
  readonly get: (table: string, key: string) => Effect.Effect<string | undefined, StorageFailure>
  /** The values of the keys, in the order of `keys`. */
  readonly getMany: (
    table: string,
    keys: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<string | undefined>, StorageFailure>
  /** The records of a range, in its order. */
  readonly range: (
    table: string,
    range: RecordRange
  ) => Effect.Effect<ReadonlyArray<RecordEntry>, StorageFailure>
  /** The keys of several ranges of one table, in the order of the ranges. */
  readonly keys: (
    table: string,
    ranges: ReadonlyArray<RecordRange>
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<string>>, StorageFailure>
  /**
   * Notifies the watcher of each written key of a table from now on. Changes by this node are
   * notified before their `write` returns.
   */
  readonly watch: (table: string, watcher: Watcher) => void
  /**
   * Whether watchers were notified of every write that any node acknowledged before. It is false
   * if waiting would take long; then callers read the records instead.
   */
  readonly isCurrent: Effect.Effect<boolean, StorageFailure>
  /** Fails while reads are slower than they should be; the storage has its own health check. */
  readonly health: Effect.Effect<void, StorageFailure>
}

/** A value that is there, or will be. */
type Eventually<A> = A | Promise<A>

/** The reads of the port on records in this process; they throw the errors of the store. */
export interface RecordsInMemory {
  readonly get: (table: string, key: string) => Eventually<string | undefined>
  readonly getMany: (
    table: string,
    keys: ReadonlyArray<string>
  ) => Eventually<ReadonlyArray<string | undefined>>
  readonly range: (table: string, range: RecordRange) => Eventually<ReadonlyArray<RecordEntry>>
  readonly keys: (
    table: string,
    ranges: ReadonlyArray<RecordRange>
  ) => Eventually<ReadonlyArray<ReadonlyArray<string>>>
}

/** Throws TypeError if a conditional write expects a key that it does not change. */
export const assertExpected = (
  expected: ReadonlyArray<RecordChange>,
  changes: ReadonlyArray<RecordChange>
): void => {
  for (const { key, table } of expected) {
    if (!changes.some((change) => change.key === key && change.table === table)) {
      throw new TypeError(
        `${table}/${key} is expected and not changed: add it to the changes of writeIf`
      )
    }
  }
}

/** The port to the records of a store: for indexes and queries over many actors. */
export class Records extends Context.Service<Records, RecordsApi>()("restante/runtime/Records") {}

/** Notified of the changes of one table, for caches of its records. */
export interface Watcher {
  /** From now until `changed` for this key, readers may see different values. */
  readonly changing: (key: string) => void
  /** All readers now see the same value. undefined: any key of the table may have changed. */
  readonly changed: (key: string | undefined) => void
}

/** The watchers of all tables. */
export class Watchers {
  private readonly tables = new Map<string, Array<Watcher>>()

  readonly watch = (table: string, watcher: Watcher): void => {
    const watchers = this.tables.get(table)
    if (watchers === undefined) this.tables.set(table, [watcher])
    else watchers.push(watcher)
  }

  /** Call it before any reader can see these changes. */
  begin(changes: ReadonlyArray<RecordChange>): void {
    this.each(changes, ({ changing }, key) => {
      changing(key)
    })
  }

  /** Call it when all readers see the changes, or none will. */
  end(changes: ReadonlyArray<RecordChange>): void {
    this.each(changes, ({ changed }, key) => {
      changed(key)
    })
  }

  /** Call it when any key of any table may have changed. */
  all(): void {
    for (const watchers of this.tables.values()) {
      for (const { changed } of watchers) changed(undefined)
    }
  }

  private each(
    changes: ReadonlyArray<RecordChange>,
    notify: (watcher: Watcher, key: string) => void
  ): void {
    if (this.tables.size === 0) return
    for (const { key, table } of changes) {
      for (const watcher of this.tables.get(table) ?? []) notify(watcher, key)
    }
  }
}
