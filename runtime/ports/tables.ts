/** Tables of records in memory, each with its keys in order. */
import {
  byBytes,
  type RecordChange,
  type RecordEntry,
  type RecordRange,
  type RecordsInMemory
} from "./records.ts"
import { SortedKeys } from "./sorted-keys.ts"

interface Table {
  readonly keys: SortedKeys
  readonly values: Map<string, string>
}

/** The keys of a range, in its direction and to its limit. */
const page = (keys: SortedKeys, { after, limit, prefix = "", reverse }: RecordRange) => {
  const found: Array<string> = []
  const from = reverse === true
    // No text stands after all that begin with the prefix, so it is looked for.
    ? keys.downwards((key) =>
      (after !== undefined && byBytes(key, after) >= 0) ||
      (byBytes(key, prefix) > 0 && !key.startsWith(prefix))
    )
    : keys.upwards((key) =>
      byBytes(key, prefix) >= 0 && (after === undefined || byBytes(key, after) > 0)
    )
  for (const key of from) {
    if (found.length >= limit || !key.startsWith(prefix)) break
    found.push(key)
  }
  return found
}

export class RecordTables implements RecordsInMemory {
  private readonly tables = new Map<string, Table>()

  apply(changes: ReadonlyArray<RecordChange>): void {
    for (const { key, table, value } of changes) {
      const { keys, values } = this.open(table)
      const isKnown = values.has(key)
      if (value === null) {
        if (isKnown) keys.remove(key)
        values.delete(key)
      } else {
        if (!isKnown) keys.add(key)
        values.set(key, value)
      }
    }
  }

  clear(): void {
    this.tables.clear()
  }

  get(table: string, key: string): string | undefined {
    return this.tables.get(table)?.values.get(key)
  }

  getMany(table: string, keys: ReadonlyArray<string>): ReadonlyArray<string | undefined> {
    return keys.map((key) => this.get(table, key))
  }

  range(table: string, range: RecordRange): ReadonlyArray<RecordEntry> {
    const known = this.tables.get(table)
    if (known === undefined) return []
    return page(known.keys, range).map((key) => ({ key, value: known.values.get(key) ?? "" }))
  }

  keys(table: string, ranges: ReadonlyArray<RecordRange>): ReadonlyArray<ReadonlyArray<string>> {
    const known = this.tables.get(table)
    return ranges.map((range) => known === undefined ? [] : page(known.keys, range))
  }

  private open(name: string): Table {
    const known = this.tables.get(name)
    if (known !== undefined) return known
    const table = { keys: new SortedKeys([]), values: new Map<string, string>() }
    this.tables.set(name, table)
    return table
  }
}
