/** Tables of records in memory, each with its keys in order. */
import { byBytes, type RecordChange, type RecordEntry, type RecordRange,
  type RecordsInMemory } from "./records.ts"

/** Keys of a new chunk; a chunk with twice as many is split. */
export const KEYS_CHUNK = 512

/** A position among the keys; valid until they change. */
interface Position {
  readonly chunk: number
  readonly at: number
}

/** Binary search: the first index where `holds` is true. It must be true for all later ones too. */
const firstIndex = (length: number, holds: (at: number) => boolean): number => {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * Keys in byte order, in chunks: inserting one among a million moves a few hundred keys, not all
 * later ones.
 */
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
    const { at, chunk } = this.position((one) => byBytes(one, key) >= 0)
    // After all keys: at the end of the last chunk.
    const index = Math.min(chunk, Math.max(0, this.chunks.length - 1))
    const keys = this.chunks[index]
    if (keys === undefined) this.chunks.push([key])
    else {
      const position = index === chunk ? at : keys.length
      if (keys[position] === key) return
      keys.splice(position, 0, key)
      if (keys.length > 2 * KEYS_CHUNK) this.chunks.splice(index + 1, 0, keys.splice(KEYS_CHUNK))
    }
    this.size++
  }

  remove(key: string): void {
    const { at, chunk } = this.position((one) => byBytes(one, key) >= 0)
    const keys = this.chunks[chunk]
    if (keys?.[at] !== key) return
    keys.splice(at, 1)
    if (keys.length === 0) this.chunks.splice(chunk, 1)
    this.size--
  }

  /** Ascending from the first key where `holds` is true; it must be true for all later keys. */
  *upwards(holds: (key: string) => boolean): Generator<string> {
    const { at, chunk } = this.position(holds)
    for (let index = chunk; index < this.chunks.length; index++) {
      const keys = this.chunks[index] ?? []
      for (let one = index === chunk ? at : 0; one < keys.length; one++) yield keys[one] ?? ""
    }
  }

  /** Descending from the last key where `holds` is false. */
  *downwards(holds: (key: string) => boolean): Generator<string> {
    const { at, chunk } = this.position(holds)
    for (let index = Math.min(chunk, this.chunks.length - 1); index >= 0; index--) {
      const keys = this.chunks[index] ?? []
      for (let one = (index === chunk ? at : keys.length) - 1; one >= 0; one--) {
        yield keys[one] ?? ""
      }
    }
  }

  private position(holds: (key: string) => boolean): Position {
    const { chunks } = this
    const chunk = firstIndex(chunks.length, (index) => holds(chunks[index]?.at(-1) ?? ""))
    const keys = chunks[chunk] ?? []
    return { chunk, at: firstIndex(keys.length, (index) => holds(keys[index] ?? "")) }
  }
}

interface Table {
  readonly keys: SortedKeys
  readonly values: Map<string, string>
}

/** The keys of a range, in its direction, up to its limit. */
const keysOfRange = (keys: SortedKeys, { after, limit, prefix = "", reverse }: RecordRange) => {
  const found: Array<string> = []
  const from = reverse === true
    // No text is greater than all texts with the prefix, so the end is searched.
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
      const exists = values.has(key)
      if (value === null) {
        if (exists) keys.remove(key)
        values.delete(key)
      } else {
        if (!exists) keys.add(key)
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
    const records = this.tables.get(table)
    if (records === undefined) return []
    return keysOfRange(records.keys, range).map((key) => ({
      key,
      value: records.values.get(key) ?? ""
    }))
  }

  keys(table: string, ranges: ReadonlyArray<RecordRange>): ReadonlyArray<ReadonlyArray<string>> {
    const records = this.tables.get(table)
    return ranges.map((range) => records === undefined ? [] : keysOfRange(records.keys, range))
  }

  private open(name: string): Table {
    const existing = this.tables.get(name)
    if (existing !== undefined) return existing
    const table = { keys: new SortedKeys([]), values: new Map<string, string>() }
    this.tables.set(name, table)
    return table
  }
}
