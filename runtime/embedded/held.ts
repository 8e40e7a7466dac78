/** Records as they are read from an open database. */
import {
  byBytes,
  type RecordEntry,
  type RecordRange,
  type RecordsInMemory
} from "../ports/records.ts"
import { type Database, readSpan } from "./engine.ts"
import { endOf, recordKey } from "./keys.ts"

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
