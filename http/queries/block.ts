/**
 * Rows that follow each other in a table, packed: their texts in one text, and where each ends. A
 * text and three small arrays for a hundred rows, where as many objects would take thrice the room
 * and be looked at by each garbage collection.
 */
import type { Row, TableSchema } from "./fields.ts"
import { blockCharsMax, blockOverheadBytes } from "./limits.ts"
import type { RowEntry } from "./sources.ts"

/** What the rows of a table have beside the number that is indexed, all of them texts. */
export interface Columns {
  readonly index: string
  /** In the order of the fields; undefined where the number stands. */
  readonly names: ReadonlyArray<string | undefined>
  /** How many of them are texts. */
  readonly texts: number
}

const columnsMax = 8
const numberMax = 0xffff

/** undefined: rows of this table are not packed. */
export const columnsOf = ({ fields, index }: TableSchema): Columns | undefined => {
  if (index === undefined || fields.length > columnsMax) return undefined
  const names = fields.map(({ name }) => name === index.field ? undefined : name)
  return { index: index.field, names, texts: names.filter((name) => name !== undefined).length }
}

/** Rows that cannot be packed as they are. */
export class NotPacked extends Error {}

const wide = /[^\u0000-\u00ff]/

/** The texts of a row in their order; in `missing` a bit for each that it does not have. */
const textsOf = ({ index, names }: Columns, row: Row, texts: Array<string>): number => {
  let missing = 0
  let known = 1
  for (const [at, name] of names.entries()) {
    if (name === undefined) continue
    const value = row[name]
    if (value === undefined) missing |= 1 << at
    else known++
    if (value !== undefined && typeof value !== "string") throw new NotPacked(name)
    texts.push(value ?? "")
  }
  if (Object.keys(row).length !== known) throw new NotPacked(index)
  return missing
}

export class Block {
  readonly size: number
  /** Of the indexed field. */
  readonly least: number
  readonly greatest: number
  /** What it takes in memory, about. */
  readonly bytes: number
  private readonly columns: Columns
  private readonly text: string
  /** Where the key and each text of each row end. */
  private readonly ends: Uint16Array | Uint32Array
  private readonly numbers: Uint16Array
  private readonly missing: Uint8Array

  /** Throws {@link NotPacked}. */
  constructor(columns: Columns, entries: ReadonlyArray<RowEntry>) {
    const texts: Array<string> = []
    this.columns = columns
    this.size = entries.length
    this.numbers = new Uint16Array(entries.length)
    this.missing = new Uint8Array(entries.length)
    let least = numberMax
    let greatest = 0
    for (const [at, { key, row }] of entries.entries()) {
      const number = row[columns.index]
      if (typeof number !== "number" || !(number >= 0 && number <= numberMax) || number % 1 !== 0) {
        throw new NotPacked(columns.index)
      }
      least = Math.min(least, number)
      greatest = Math.max(greatest, number)
      this.numbers[at] = number
      texts.push(key)
      this.missing[at] = textsOf(columns, row, texts)
    }
    this.least = least
    this.greatest = greatest
    this.text = texts.join("")
    const { length } = this.text
    this.ends = length > 0xffff ? new Uint32Array(texts.length) : new Uint16Array(texts.length)
    let end = 0
    for (const [at, text] of texts.entries()) {
      end += text.length
      this.ends[at] = end
    }
    this.bytes = (wide.test(this.text) ? 2 : 1) * length + this.ends.byteLength +
      3 * this.size + blockOverheadBytes
  }

  /** The first row after `from` whose number is within; `size` where there is none. */
  next(from: number, low: number, high: number): number {
    const { numbers, size } = this
    for (let at = from; at < size; at++) {
      const number = numbers[at] ?? 0
      if (number >= low && number <= high) return at
    }
    return size
  }

  /** The last row before it; -1 where there is none. */
  previous(from: number, low: number, high: number): number {
    const { numbers } = this
    for (let at = from; at >= 0; at--) {
      const number = numbers[at] ?? 0
      if (number >= low && number <= high) return at
    }
    return -1
  }

  key(at: number): string {
    const first = at * (this.columns.texts + 1)
    return this.text.slice(first === 0 ? 0 : this.ends[first - 1], this.ends[first])
  }

  entry(at: number): RowEntry {
    const { columns: { index, names, texts }, ends, text } = this
    let end = at * (texts + 1)
    let from = ends[end] ?? 0
    const key = text.slice(end === 0 ? 0 : ends[end - 1], from)
    const missing = this.missing[at] ?? 0
    const row: Record<string, string | number> = {}
    for (let column = 0; column < names.length; column++) {
      const name = names[column]
      if (name === undefined) {
        row[index] = this.numbers[at] ?? 0
        continue
      }
      const to = ends[++end] ?? 0
      if (missing === 0 || (missing & (1 << column)) === 0) row[name] = text.slice(from, to)
      from = to
    }
    return { key, row }
  }

  /** How many rows stand before those for which `isAfter`, as all after the first of them. */
  countUntil(isAfter: (key: string) => boolean): number {
    let low = 0
    let high = this.size
    while (low < high) {
      const middle = (low + high) >> 1
      if (isAfter(this.key(middle))) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** Rows as blocks of so many at the most. Throws {@link NotPacked}. */
export const blocksOf = (
  columns: Columns,
  entries: ReadonlyArray<RowEntry>,
  rowsMax: number
): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let from = 0
  let chars = 0
  const end = (to: number) => {
    if (to > from) blocks.push(new Block(columns, entries.slice(from, to)))
    from = to
    chars = 0
  }
  for (const [at, { key, row }] of entries.entries()) {
    let own = key.length
    for (const name in row) own += String(row[name]).length
    if (at - from >= rowsMax || chars + own > blockCharsMax) end(at)
    chars += own
  }
  end(entries.length)
  return blocks
}
