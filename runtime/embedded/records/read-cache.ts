/**
 * Caches the results of reads until their table changes. A hit returns the same object, so that
 * its readers can cache what they decode from it. An uncached read costs half a microsecond a row
 * in the binding, however warm the database is.
 */
import { LRUCache } from "lru-cache"
import { cachedCharsMax, cachedResultCharsMax } from "../../limits.ts"
import type { RecordEntry, RecordRange, RecordsInMemory } from "../../ports/index.ts"

interface CachedResult {
  readonly value: object
  readonly table: string
}

const charsOf = (texts: ReadonlyArray<string | undefined>): number =>
  texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)

const charsOfEntries = (entries: ReadonlyArray<RecordEntry>): number =>
  entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0)

const nameOf = ({ after, limit, prefix, reverse }: RecordRange): string =>
  `${limit}\u0000${reverse === true ? 1 : 0}\u0000${prefix ?? ""}\u0000${
    after === undefined ? 0 : `1${after}`
  }`

export class ReadCache implements RecordsInMemory {
  private readonly records: RecordsInMemory
  /** By a name of the read. */
  private readonly results = new LRUCache<string, CachedResult>({
    maxSize: cachedCharsMax,
    dispose: ({ table }, name) => this.tables.get(table)?.delete(name)
  })
  /** The names of the results of each table. */
  private readonly tables = new Map<string, Set<string>>()
  /** The number of changes in flight, by table. */
  private readonly changes = new Map<string, number>()

  constructor(records: RecordsInMemory) {
    this.records = records
  }

  readonly get: RecordsInMemory["get"] = (table, key) => this.records.get(table, key)

  readonly getMany: RecordsInMemory["getMany"] = (table, keys) =>
    this.read(
      table,
      `${table}\u0000${keys.length}\u0000${keys.join("\u0000")}`,
      () => this.records.getMany(table, keys),
      charsOf
    )

  readonly range: RecordsInMemory["range"] = (table, range) =>
    this.read(
      table,
      `${table}\u0000range\u0000${nameOf(range)}`,
      () => this.records.range(table, range),
      charsOfEntries
    )

  readonly keys: RecordsInMemory["keys"] = (table, ranges) =>
    this.read(
      table,
      `${table}\u0000keys\u0000${ranges.map(nameOf).join("\u0001")}`,
      () => this.records.keys(table, ranges),
      (found) => found.reduce((sum, keys) => sum + charsOf(keys), 0)
    )

  /** From now on a read may see a change of the table: nothing of it is cached until the end. */
  beginChange(table: string): void {
    this.changes.set(table, (this.changes.get(table) ?? 0) + 1)
    const names = this.tables.get(table)
    if (names === undefined) return
    this.tables.delete(table)
    for (const name of names) this.results.delete(name)
  }

  /** From now on every read sees the change. */
  endChange(table: string): void {
    const others = (this.changes.get(table) ?? 1) - 1
    if (others === 0) this.changes.delete(table)
    else this.changes.set(table, others)
  }

  clear(): void {
    this.results.clear()
    this.tables.clear()
  }

  private read<A extends object>(
    table: string,
    name: string,
    read: () => A | Promise<A>,
    measure: (value: A) => number
  ): A | Promise<A> {
    const cached = this.results.get(name)
    // The name determines the type of the result.
    if (cached !== undefined) return cached.value as A
    const value = read()
    if (!(value instanceof Promise) && !this.changes.has(table)) {
      this.add(table, name, value, measure(value) + name.length)
    }
    return value
  }

  private add(table: string, name: string, value: object, chars: number): void {
    if (chars > cachedResultCharsMax) return
    const names = this.tables.get(table) ?? new Set<string>()
    this.tables.set(table, names.add(name))
    this.results.set(name, { value, table }, { size: chars })
  }
}
