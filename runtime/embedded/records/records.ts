/** The record port on the embedded store. */
import { Effect } from "effect"
import { recordChangesMax } from "../../limits.ts"
import { assertExpected, byBytes, type RecordChange, type RecordEntry, type RecordRange,
  type RecordsApi, type RecordsInMemory, Watchers } from "../../ports/index.ts"
import { type Database, readSpan, type WriteBatch } from "../engine/index.ts"
import { endOf, recordKey } from "../keys.ts"
import type { EmbeddedStore } from "../storage/index.ts"
import { ReadCache } from "./read-cache.ts"

const entriesOf = (rows: ReadonlyArray<string>, skip: number): Array<RecordEntry> => {
  const entries: Array<RecordEntry> = []
  for (let at = 0; at < rows.length; at += 2) {
    entries.push({ key: (rows[at] ?? "").slice(skip), value: rows[at + 1] ?? "" })
  }
  return entries
}

const least = (one: Buffer, other: Buffer): Buffer => Buffer.compare(one, other) < 0 ? one : other

/** The span of keys of a range. */
const spanOf = (table: string, { after, limit, prefix = "", reverse }: RecordRange) => {
  const from = recordKey(table, prefix)
  const end = endOf(from)
  if (after === undefined) return { gte: from, lt: end, limit }
  const bound = recordKey(table, after)
  if (reverse === true) return { gte: from, lt: least(Buffer.from(bound), end), limit }
  const before = Buffer.compare(Buffer.from(bound), Buffer.from(from)) < 0
  return before ? { gte: from, lt: end, limit } : { gt: bound, lt: end, limit }
}

/** There is no key from `from` up to `to`; undefined: to the end of the table. */
interface Gap {
  readonly from: string
  readonly to: string | undefined
}

/** Where a range begins. No key holds U+0000: after a key comes that key with one. */
const startOf = ({ after, prefix = "" }: RecordRange): string =>
  after === undefined || byBytes(after, prefix) < 0 ? prefix : `${after}\u0000`

const isIn = ({ from, to }: Gap, range: RecordRange): boolean => {
  const { prefix = "", reverse } = range
  if (reverse === true || byBytes(from, startOf(range)) > 0) return false
  return to === undefined || (byBytes(to, prefix) > 0 && !to.startsWith(prefix))
}

/**
 * The keys of several ranges. Where nothing begins with a prefix, a look for it still finds what
 * comes next: the ranges before that are known to be empty, and are not looked for.
 */
class KeyLooks {
  private readonly database: () => Database
  private readonly table: string
  private readonly ranges: ReadonlyArray<RecordRange>
  private readonly found: Array<ReadonlyArray<string>> = []
  private gap: Gap | undefined

  constructor(database: () => Database, table: string, ranges: ReadonlyArray<RecordRange>) {
    this.database = database
    this.table = table
    this.ranges = ranges
  }

  /** In this turn of the event loop, as long as nothing takes long. */
  look(): ReadonlyArray<ReadonlyArray<string>> | Promise<ReadonlyArray<ReadonlyArray<string>>> {
    while (this.found.length < this.ranges.length) {
      const range = this.ranges[this.found.length]
      if (range === undefined) break
      if (range.limit <= 0 || (this.gap !== undefined && isIn(this.gap, range))) {
        this.found.push([])
        continue
      }
      const { prefix, reverse } = range
      const isOpen = reverse !== true && prefix !== undefined
      const span = spanOf(this.table, range)
      const open = isOpen ? { ...span, lt: endOf(recordKey(this.table, "")) } : span
      const rows = readSpan(this.database, open, reverse === true)
      if (rows instanceof Promise) {
        return rows.then((all) => {
          this.take(range, isOpen, all)
          return this.look()
        })
      }
      this.take(range, isOpen, rows)
    }
    return this.found
  }

  private take(range: RecordRange, isOpen: boolean, rows: ReadonlyArray<string>): void {
    const keys = entriesOf(rows, recordKey(this.table, "").length).map(({ key }) => key)
    const { prefix = "" } = range
    const fitting = isOpen ? keys.filter((key) => key.startsWith(prefix)) : keys
    if (isOpen && fitting.length === 0) this.gap = { from: startOf(range), to: keys[0] }
    this.found.push(fitting)
  }
}

/** The records of a database, which is asked for anew at each step of a read. */
export const heldIn = (database: () => Database): RecordsInMemory => ({
  get: (table, key) => database().getText(recordKey(table, key)),
  getMany: (table, keys) => database().getTexts(keys.map((key) => recordKey(table, key))),
  range: (table, range) => {
    if (range.limit <= 0) return []
    const skip = recordKey(table, "").length
    const rows = readSpan(database, spanOf(table, range), range.reverse === true)
    return rows instanceof Promise
      ? rows.then((all) => entriesOf(all, skip))
      : entriesOf(rows, skip)
  },
  keys: (table, ranges) => new KeyLooks(database, table, ranges).look()
})

/* Records as they are read from an open database. */

const apply = (batch: WriteBatch, changes: ReadonlyArray<RecordChange>): void => {
  if (changes.length === 0) return
  batch.commits++
  for (const { key, table, value } of changes) {
    if (value === null) batch.remove(recordKey(table, key))
    else batch.put(recordKey(table, key), value)
  }
}

const tablesOf = (changes: ReadonlyArray<RecordChange>): ReadonlySet<string> =>
  new Set(changes.map(({ table }) => table))

/**
 * What the group under way changes and the database does not show yet. A group is prepared when all
 * groups before it are durable, so that the rest of what was changed can be read.
 */
class Unwritten {
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

  holds(store: EmbeddedStore, { key, table, value }: RecordChange): boolean {
    const name = recordKey(table, key)
    const unwritten = this.values.get(name)
    const known = unwritten === undefined ? store.database().getText(name) : unwritten.value
    return (known ?? null) === value
  }
}

const writing = (
  store: EmbeddedStore,
  { begin, end }: Pick<Watchers, "begin" | "end">
): Pick<RecordsApi, "write" | "writeIf"> => {
  const unwritten = new Unwritten()
  const submit = (
    expected: ReadonlyArray<RecordChange>,
    changes: ReadonlyArray<RecordChange>
  ) =>
    Effect.suspend(() => {
      const by = {}
      let isKept = false
      const done = () => {
        if (!isKept) return
        unwritten.drop(by, changes)
        end(changes)
      }
      return store.submit(
        (batch) => {
          assertExpected(expected, changes)
          isKept = expected.every((change) => unwritten.holds(store, change))
          if (!isKept) return
          apply(batch, changes)
          unwritten.add(by, changes)
          begin(changes)
        },
        () => {
          done()
          return isKept
        },
        done
      )
    })
  return {
    write: (changes) => Effect.asVoid(submit([], changes)),
    writeIf: submit
  }
}

/** The record port upon an open store. */
export const makeRecords = (store: EmbeddedStore): RecordsApi => {
  const held = new ReadCache(heldIn(store.database))
  const watchers = new Watchers()
  store.onReopened(() => {
    held.clear()
    watchers.all()
  })
  const telling = {
    begin: (changes: ReadonlyArray<RecordChange>) => {
      for (const table of tablesOf(changes)) held.changing(table)
      watchers.begin(changes)
    },
    end: (changes: ReadonlyArray<RecordChange>) => {
      for (const table of tablesOf(changes)) held.changed(table)
      watchers.end(changes)
    }
  }
  return {
    changesMax: recordChangesMax,
    ...writing(store, telling),
    get: (table, key) => store.read(() => held.get(table, key)),
    getMany: (table, keys) => store.read(() => held.getMany(table, keys)),
    range: (table, range) => store.read(() => held.range(table, range)),
    keys: (table, ranges) => store.read(() => held.keys(table, ranges)),
    watch: watchers.watch,
    isCurrent: Effect.succeed(true),
    // The storage port tells of the store that both are upon.
    health: Effect.void
  }
}
