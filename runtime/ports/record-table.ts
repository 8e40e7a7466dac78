/** Tables of records in memory, each with its keys in order. */
import { byBytes, type RecordChange, type RecordEntry, type RecordRange,
  type RecordsInMemory } from "./records.ts"

/** Keys that are moved together when one comes among them; twice as many are split. */
export const KEYS_CHUNK = 512

/** A place among the keys, as long as they do not change. */
interface Place {
  readonly chunk: number
  readonly at: number
}

/** The first index from 0 up to `length` of which `holds` is true; it is of all after it too. */
const firstOf = (length: number, holds: (at: number) => boolean): number => {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

export class SortedKeys {
  size = 0
  private readonly chunks: Array<Array<string>> = []

  constructor(keys: ReadonlyArray<string>) {
    const sorted = [...new Set(keys)].sort(byBytes)
    for (let at = 0; at < sorted.length; at += KEYS_CHUNK) {
      this.chunks.push(sorted.slice(at, at + KEYS_CHUNK))
    }
    this.size = sorted.length
  }

  add(key: string): void {
    const { at, chunk } = this.place((one) => byBytes(one, key) >= 0)
    // After all keys: at the end of the last chunk.
    const index = Math.min(chunk, Math.max(0, this.chunks.length - 1))
    const keys = this.chunks[index]
    if (keys === undefined) this.chunks.push([key])
    else {
      const place = index === chunk ? at : keys.length
      if (keys[place] === key) return
      keys.splice(place, 0, key)
      if (keys.length > 2 * KEYS_CHUNK) this.chunks.splice(index + 1, 0, keys.splice(KEYS_CHUNK))
    }
    this.size++
  }

  remove(key: string): void {
    const { at, chunk } = this.place((one) => byBytes(one, key) >= 0)
    const keys = this.chunks[chunk]
    if (keys?.[at] !== key) return
    keys.splice(at, 1)
    if (keys.length === 0) this.chunks.splice(chunk, 1)
    this.size--
  }

  /** From the first key for which `holds`; it must hold for all keys after it too. */
  *upwards(holds: (key: string) => boolean): Generator<string> {
    const { at, chunk } = this.place(holds)
    for (let index = chunk; index < this.chunks.length; index++) {
      const keys = this.chunks[index] ?? []
      for (let one = index === chunk ? at : 0; one < keys.length; one++) yield keys[one] ?? ""
    }
  }

  /** Downwards from the last key before those for which `holds`. */
  *downwards(holds: (key: string) => boolean): Generator<string> {
    const { at, chunk } = this.place(holds)
    for (let index = Math.min(chunk, this.chunks.length - 1); index >= 0; index--) {
      const keys = this.chunks[index] ?? []
      for (let one = (index === chunk ? at : keys.length) - 1; one >= 0; one--) {
        yield keys[one] ?? ""
      }
    }
  }

  private place(holds: (key: string) => boolean): Place {
    const { chunks } = this
    const chunk = firstOf(chunks.length, (index) => holds(chunks[index]?.at(-1) ?? ""))
    const keys = chunks[chunk] ?? []
    return { chunk, at: firstOf(keys.length, (index) => holds(keys[index] ?? "")) }
  }
}

/*
 * Keys in the order of their bytes, in chunks: so that one more among a million costs a move of a
 * few hundred, not of all that come after it.
 */

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
