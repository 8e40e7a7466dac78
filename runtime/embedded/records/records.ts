/** The record port on the embedded store. */
import { Effect } from "effect"
import { recordChangesMax } from "../../limits.ts"
import { assertExpected, byBytes, type RecordChange, type RecordEntry, type RecordRange,
  type RecordsApi, type RecordsInMemory, Watchers } from "../../ports/index.ts"
import { type Database, keysIn, readSpan, type WriteBatch } from "../engine/index.ts"
import { endOf, recordKey } from "../keys.ts"
import type { EmbeddedStore } from "../storage/index.ts"
import { ReadCache } from "./read-cache.ts"

/* Reads of an open database; a view of a cluster's records reads in the same way. */

const entriesIn = (rows: ReadonlyArray<string>, skip: number): Array<RecordEntry> => {
  const entries: Array<RecordEntry> = []
  for (let at = 0; at < rows.length; at += 2) {
    entries.push({ key: (rows[at] ?? "").slice(skip), value: rows[at + 1] ?? "" })
  }
  return entries
}

const least = (one: Buffer, other: Buffer): Buffer => Buffer.compare(one, other) < 0 ? one : other

/** The span of the keys of a range. */
const spanOf = (table: string, { after, limit, prefix = "", reverse }: RecordRange) => {
  const from = recordKey(table, prefix)
  const end = endOf(from)
  if (after === undefined) return { gte: from, lt: end, limit }
  const bound = recordKey(table, after)
  if (reverse === true) return { gte: from, lt: least(Buffer.from(bound), end), limit }
  const isBefore = Buffer.compare(Buffer.from(bound), Buffer.from(from)) < 0
  return isBefore ? { gte: from, lt: end, limit } : { gt: bound, lt: end, limit }
}

/** There is no key from `from` up to `to`; undefined: to the end of the table. */
interface KeyGap {
  readonly from: string
  readonly to: string | undefined
}

/** The least key of a range. Keys contain no U+0000, so `${after}\0` is the least one after it. */
const startOf = ({ after, prefix = "" }: RecordRange): string =>
  after === undefined || byBytes(after, prefix) < 0 ? prefix : `${after}\u0000`

const isWithinGap = ({ from, to }: KeyGap, range: RecordRange): boolean => {
  const { prefix = "", reverse } = range
  if (reverse === true || byBytes(from, startOf(range)) > 0) return false
  return to === undefined || (byBytes(to, prefix) > 0 && !to.startsWith(prefix))
}

/**
 * Reads the keys of several ranges, synchronously where the database can. The read of an empty
 * range returns the next key of the table: all ranges before that key are empty too, and need no
 * read.
 */
const readKeys = (
  database: () => Database,
  table: string,
  ranges: ReadonlyArray<RecordRange>
): ReadonlyArray<ReadonlyArray<string>> | Promise<ReadonlyArray<ReadonlyArray<string>>> => {
  const found: Array<ReadonlyArray<string>> = []
  const skip = recordKey(table, "").length
  let gap: KeyGap | undefined
  const add = (range: RecordRange, isOpen: boolean, rows: ReadonlyArray<string>): void => {
    const keys = keysIn(rows, skip)
    const { prefix = "" } = range
    const within = isOpen ? keys.filter((key) => key.startsWith(prefix)) : keys
    if (isOpen && within.length === 0) gap = { from: startOf(range), to: keys[0] }
    found.push(within)
  }
  const readRest = (): ReturnType<typeof readKeys> => {
    for (
      let range = ranges[found.length];
      range !== undefined;
      range = ranges[found.length]
    ) {
      if (range.limit <= 0 || (gap !== undefined && isWithinGap(gap, range))) {
        found.push([])
        continue
      }
      const next = range
      const isOpen = next.reverse !== true && next.prefix !== undefined
      const span = spanOf(table, next)
      const open = isOpen ? { ...span, lt: endOf(recordKey(table, "")) } : span
      const rows = readSpan(database, open, next.reverse === true)
      if (rows instanceof Promise) {
        return rows.then((all) => {
          add(next, isOpen, all)
          return readRest()
        })
      }
      add(next, isOpen, rows)
    }
    return found
  }
  return readRest()
}

/** The records of a database; each step of a read calls `database` for the one that is open. */
export const recordsIn = (database: () => Database): RecordsInMemory => ({
  get: (table, key) => database().getText(recordKey(table, key)),
  getMany: (table, keys) => database().getTexts(keys.map((key) => recordKey(table, key))),
  range: (table, range) => {
    if (range.limit <= 0) return []
    const skip = recordKey(table, "").length
    const rows = readSpan(database, spanOf(table, range), range.reverse === true)
    return rows instanceof Promise
      ? rows.then((all) => entriesIn(all, skip))
      : entriesIn(rows, skip)
  },
  keys: (table, ranges) => readKeys(database, table, ranges)
})

/* Writes of the store. */

const apply = (batch: WriteBatch, changes: ReadonlyArray<RecordChange>): void => {
  if (changes.length === 0) return
  batch.commits++
  for (const { key, table, value } of changes) {
    if (value === null) batch.remove(recordKey(table, key))
    else batch.put(recordKey(table, key), value)
  }
}

/**
 * The changes of the group in flight, which the database does not show yet. A group is prepared
 * when all earlier groups are durable, so the database shows everything else.
 */
class StagedRecords {
  private readonly values = new Map<string, { readonly value: string | null; by: object }>()

  add(by: object, changes: ReadonlyArray<RecordChange>): void {
    for (const { key, table, value } of changes) {
      this.values.set(recordKey(table, key), { value, by })
    }
  }

  drop(by: object, changes: ReadonlyArray<RecordChange>): void {
    for (const { key, table } of changes) {
      const name = recordKey(table, key)
      if (this.values.get(name)?.by === by) this.values.delete(name)
    }
  }

  /** Whether a record has the expected value. */
  agrees(store: EmbeddedStore, { key, table, value }: RecordChange): boolean {
    const name = recordKey(table, key)
    const staged = this.values.get(name)
    const current = staged === undefined ? store.database().getText(name) : staged.value
    return (current ?? null) === value
  }
}

/** Writes changes if all records have their expected values; whether they had. */
const conditionalWrite = (
  store: EmbeddedStore,
  { begin, end }: Pick<Watchers, "begin" | "end">
): RecordsApi["writeIf"] => {
  const staged = new StagedRecords()
  return (expected, changes) =>
    Effect.suspend(() => {
      const by = {}
      let isWritten = false
      const unstage = () => {
        if (!isWritten) return
        staged.drop(by, changes)
        end(changes)
      }
      return store.submit(
        (batch) => {
          assertExpected(expected, changes)
          isWritten = expected.every((change) => staged.agrees(store, change))
          if (!isWritten) return
          apply(batch, changes)
          staged.add(by, changes)
          begin(changes)
        },
        () => {
          unstage()
          return isWritten
        },
        unstage
      )
    })
}

const tablesOf = (changes: ReadonlyArray<RecordChange>): ReadonlySet<string> =>
  new Set(changes.map(({ table }) => table))

/** The record port on an open store. */
export const makeRecords = (store: EmbeddedStore): RecordsApi => {
  const cache = new ReadCache(recordsIn(store.database))
  const watchers = new Watchers()
  store.onReopened(() => {
    cache.clear()
    watchers.all()
  })
  const writeIf = conditionalWrite(store, {
    begin: (changes) => {
      for (const table of tablesOf(changes)) cache.beginChange(table)
      watchers.begin(changes)
    },
    end: (changes) => {
      for (const table of tablesOf(changes)) cache.endChange(table)
      watchers.end(changes)
    }
  })
  return {
    changesMax: recordChangesMax,
    write: (changes) => Effect.asVoid(writeIf([], changes)),
    writeIf,
    get: (table, key) => store.read(() => cache.get(table, key)),
    getMany: (table, keys) => store.read(() => cache.getMany(table, keys)),
    range: (table, range) => store.read(() => cache.range(table, range)),
    keys: (table, ranges) => store.read(() => cache.keys(table, ranges)),
    watch: watchers.watch,
    isCurrent: Effect.succeed(true),
    // The storage port reports the health of the store.
    health: Effect.void
  }
}
