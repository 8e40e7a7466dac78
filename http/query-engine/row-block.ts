/**
 * Consecutive rows of a table, packed: one string of all texts, and typed arrays of their ends and
 * of the indexed numbers. A block of a hundred rows takes a third of the memory of as many objects,
 * and the garbage collector sees only four objects.
 */
import { blockCharsMax, blockOverheadBytes } from "../limits.ts"
import type { RowEntry } from "./row-sources.ts"
import type { Row, TableSchema } from "./table-fields.ts"

/** The columns of a packed table: texts, and one indexed number. */
export interface PackedColumns {
  readonly index: string
  /** The names of the text columns in the order of the fields; undefined for the number. */
  readonly names: ReadonlyArray<string | undefined>
  /** How many text columns there are. */
  readonly texts: number
}

const columnsMax = 8

const numberMax = 0xffff

/** The columns of a table; undefined when its rows cannot be packed. */
export const columnsOf = ({ fields, index }: TableSchema): PackedColumns | undefined => {
  if (index === undefined || fields.length > columnsMax) return undefined
  const names = fields.map(({ name }) => name === index.field ? undefined : name)
  return { index: index.field, names, texts: names.filter((name) => name !== undefined).length }
}

/** A row that cannot be packed; the message names the field. */
export class UnpackableRow extends Error {}

const wide = /[^\u0000-\u00ff]/

/**
 * Adds the texts of a row to `texts`; returns one bit for each missing column. Fields of a later
 * version are not packed, because no listing of this one shows them.
 */
const addTexts = ({ names }: PackedColumns, row: Row, texts: Array<string>): number => {
  let missing = 0
  for (const [at, name] of names.entries()) {
    if (name === undefined) continue
    const value = row[name]
    if (value === undefined) missing |= 1 << at
    if (value !== undefined && typeof value !== "string") throw new UnpackableRow(name)
    texts.push(value ?? "")
  }
  return missing
}

export class RowBlock {
  readonly size: number
  /** Bounds of the indexed field. */
  readonly least: number
  readonly greatest: number
  /** Approximate size in memory. */
  readonly bytes: number
  private readonly columns: PackedColumns
  private readonly text: string
  /** Offsets in `text` where the key and the texts of each row end. */
  private readonly ends: Uint16Array | Uint32Array
  private readonly numbers: Uint16Array
  private readonly missing: Uint8Array

  /** Throws {@link UnpackableRow}. */
  constructor(columns: PackedColumns, entries: ReadonlyArray<RowEntry>) {
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
        throw new UnpackableRow(columns.index)
      }
      least = Math.min(least, number)
      greatest = Math.max(greatest, number)
      this.numbers[at] = number
      texts.push(key)
      this.missing[at] = addTexts(columns, row, texts)
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

  /** The first row at or after `from` with a number from `low` to `high`; else `size`. */
  next(from: number, low: number, high: number): number {
    const { numbers, size } = this
    for (let at = from; at < size; at++) {
      const number = numbers[at] ?? 0
      if (number >= low && number <= high) return at
    }
    return size
  }

  /** The last row at or before `from` with such a number; else -1. */
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

  /** Number of rows before the first whose key `isAfter`; it must hold for all later keys too. */
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

/** Packs rows into blocks of at most `rowsMax`. Throws {@link UnpackableRow}. */
export const blocksOf = (
  columns: PackedColumns,
  entries: ReadonlyArray<RowEntry>,
  rowsMax: number
): ReadonlyArray<RowBlock> => {
  const blocks: Array<RowBlock> = []
  let from = 0
  let chars = 0
  const end = (to: number) => {
    if (to > from) blocks.push(new RowBlock(columns, entries.slice(from, to)))
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
