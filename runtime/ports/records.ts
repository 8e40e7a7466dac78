/** Who is told of the changes of records, by table. */
import { Context, type Effect } from "effect"
import type { StorageFailure } from "../actor/index.ts"

/** The order of keys: by their UTF-8 bytes, which is by code point and not as JavaScript has it. */
export const byBytes = (one: string, other: string): number => {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at++) {
    const a = one.charCodeAt(at)
    const b = other.charCodeAt(at)
    if (a === b) continue
    // Surrogates stand for code points above all others.
    const aHigh = a >= 0xd800 && a <= 0xdfff
    const bHigh = b >= 0xd800 && b <= 0xdfff
    return aHigh === bHigh ? a - b : aHigh ? 1 : -1
  }
  return one.length - other.length
}

export interface RecordChange {
  /** `[a-z][a-z-]*`. */
  readonly table: string
  /** Any text without U+0000; compared by its UTF-8 bytes. */
  readonly key: string
  /** null removes. */
  readonly value: string | null
  /**
   * Of a removal: it need not be remembered for ever. Whoever finds the record again, as a server
   * that was killed may have it, learns from an actor that it is over, or removes it once more.
   */
  readonly fades?: boolean
}

export interface RecordEntry {
  readonly key: string
  readonly value: string
}

export interface RecordRange {
  /** Only keys that begin so. */
  readonly prefix?: string
  /** Only keys after this one (before it, when `reverse`). */
  readonly after?: string
  readonly reverse?: boolean
  readonly limit: number
}

export interface RecordsApi {
  /** The most changes that one write may have. */
  readonly changesMax: number
  /** All of the changes, durable, or none. */
  readonly write: (changes: ReadonlyArray<RecordChange>) => Effect.Effect<void, StorageFailure>
  /**
   * Compare-and-set: as `write`, where each of `expected` still has its value (null: is not
   * there); else nothing is changed, and the answer is false. Whatever is expected must be among
   * what is changed. Both are one step for every other writer, at whichever node.
   */
  readonly writeIf: (
    expected: ReadonlyArray<RecordChange>,
    changes: ReadonlyArray<RecordChange>
  ) => Effect.Effect<boolean, StorageFailure>
  readonly get: (table: string, key: string) => Effect.Effect<string | undefined, StorageFailure>
  /** The values of keys, in their order. */
  readonly getMany: (
    table: string,
    keys: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<string | undefined>, StorageFailure>
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
   * From now on tells of each key of a table that is written; a change of this node's before its
   * write is answered.
   */
  readonly watch: (table: string, watcher: Watcher) => void
  /**
   * Whether watchers have been told of everything that was acknowledged before, at whichever node;
   * where that would take long it is false, and the other reads know what to do.
   */
  readonly isCurrent: Effect.Effect<boolean, StorageFailure>
  /** Fails while not everything can be read as quickly as it should; beside the storage's own. */
  readonly health: Effect.Effect<void, StorageFailure>
}

type Eventually<A> = A | Promise<A>

/** The reading part of the port where the records are at hand; it throws what the store throws. */
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

/** Throws when a conditional write expects what it does not change. */
export const assertExpected = (
  expected: ReadonlyArray<RecordChange>,
  changes: ReadonlyArray<RecordChange>
): void => {
  for (const { key, table } of expected) {
    if (!changes.some((change) => change.key === key && change.table === table)) {
      throw new TypeError(`${table}/${key} is expected and not changed`)
    }
  }
}

export class Records extends Context.Service<Records, RecordsApi>()("restante/runtime/Records") {}

/*
 * The record port: plain ordered tables beside the actors, for indexes and for what is queried
 * rather than addressed. The contract is the suite `test/suites/records.ts`.
 */

export interface Watcher {
  /** Some readers may see another value of the key from now on, until `changed` is told of it. */
  readonly changing: (key: string) => void
  /** What readers see of the key stays as it is now. undefined: any of the table may be another. */
  readonly changed: (key: string | undefined) => void
}

export class Watchers {
  private readonly tables = new Map<string, Array<Watcher>>()

  readonly watch = (table: string, watcher: Watcher): void => {
    const known = this.tables.get(table)
    if (known === undefined) this.tables.set(table, [watcher])
    else known.push(watcher)
  }

  /** Before these changes can be seen by anybody. */
  begin(changes: ReadonlyArray<RecordChange>): void {
    this.each(changes, ({ changing }, key) => {
      changing(key)
    })
  }

  /** When they are seen by everybody, or by nobody. */
  end(changes: ReadonlyArray<RecordChange>): void {
    this.each(changes, ({ changed }, key) => {
      changed(key)
    })
  }

  /** Anything may be otherwise now. */
  all(): void {
    for (const watchers of this.tables.values()) {
      for (const { changed } of watchers) changed(undefined)
    }
  }

  private each(
    changes: ReadonlyArray<RecordChange>,
    tell: (watcher: Watcher, key: string) => void
  ): void {
    if (this.tables.size === 0) return
    for (const { key, table } of changes) {
      for (const watcher of this.tables.get(table) ?? []) tell(watcher, key)
    }
  }
}
