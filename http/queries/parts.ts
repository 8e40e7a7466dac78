/**
 * The keys of a table, cut into parts in their order: those whose rows are held, packed, and those
 * of which nothing is known. Nothing here waits.
 */
import { byBytes } from "../../runtime/index.ts"
import { Block, blocksOf, type Columns, NotPacked } from "./block.ts"
import type { NumberRange } from "./condition.ts"
import type { RowEntry } from "./sources.ts"

/** The keys after `after`, to that of the next part. A change puts another in its place. */
interface Part {
  /** undefined: from the beginning. */
  readonly after: string | undefined
  /** undefined: unknown. */
  readonly block: Block | undefined
  /** About how many rows it has. */
  readonly rows: number
}

/** Unknown parts, one after the other, that are being read. */
export interface UnknownRun {
  readonly after: string | undefined
  /** The last key of them; undefined: to the end. */
  readonly end: string | undefined
  readonly parts: ReadonlyArray<Part>
}

/** Where reading is: after (before, in reverse) `bound` nothing has been looked at. */
export interface PartPosition {
  readonly bound: string | undefined
  /** undefined where the next part is unknown. */
  readonly ended: "Full" | "AtEnd" | undefined
}

/** What is looked for, and after (before, in reverse) which key. */
export interface Looking {
  readonly bound: string | undefined
  readonly reverse: boolean
  readonly span: NumberRange
  readonly wanted: number
}

const nothingKnown: Part = { after: undefined, block: undefined, rows: Infinity }

export const isWithin = (key: string, { after, end }: UnknownRun): boolean =>
  (after === undefined || byBytes(key, after) > 0) &&
  (end === undefined || byBytes(key, end) <= 0)

/** The first row of a block to look at. */
const startIn = (block: Block, { bound, reverse }: Looking): number => {
  if (bound === undefined) return reverse ? block.size - 1 : 0
  return reverse
    ? block.countUntil((key) => byBytes(key, bound) >= 0) - 1
    : block.countUntil((key) => byBytes(key, bound) > 0)
}

export class Parts {
  private readonly columns: Columns
  private readonly blockRows: number
  private parts: Array<Part> = [nothingKnown]
  /** What the rows take in memory, about. */
  bytes = 0
  /** There are rows that cannot be packed. */
  isOff = false

  constructor(columns: Columns, blockRows: number) {
    this.columns = columns
    this.blockRows = blockRows
  }

  get isWhole(): boolean {
    return this.parts.every(({ block }) => block !== undefined)
  }

  /** Adds rows within the span, in order, until there are so many or a part is unknown. */
  collect(entries: Array<RowEntry>, looking: Looking): PartPosition {
    const { bound: from, reverse, span: { high, low }, wanted } = looking
    const { parts } = this
    const step = reverse ? -1 : 1
    let passed: Block | undefined
    const bound = () => passed === undefined ? from : passed.key(reverse ? 0 : passed.size - 1)
    for (let part = this.locate(from, reverse), isFirst = true;; part += step, isFirst = false) {
      if (part < 0 || part >= parts.length) return { bound: bound(), ended: "AtEnd" }
      const block = parts[part]?.block
      if (block === undefined) return { bound: bound(), ended: undefined }
      const { greatest, least, size } = block
      const start = isFirst ? startIn(block, looking) : reverse ? size - 1 : 0
      if (start < 0 || start >= size) continue
      passed = block
      if (least > high || greatest < low) continue
      const next = (at: number) =>
        reverse ? block.previous(at, low, high) : block.next(at, low, high)
      for (let at = next(start); at >= 0 && at < size; at = next(at + step)) {
        const entry = block.entry(at)
        entries.push(entry)
        if (entries.length >= wanted) return { bound: entry.key, ended: "Full" }
      }
    }
  }

  /** A row is another; undefined: any may be. */
  changed(key: string | undefined): void {
    if (key === undefined) {
      this.parts = [nothingKnown]
      this.bytes = 0
      return
    }
    const at = this.locate(key, true)
    const part = this.parts[at]
    if (part === undefined) return
    const { after, block, rows } = part
    this.bytes -= block?.bytes ?? 0
    this.parts[at] = { after, block: undefined, rows }
  }

  /** About how many rows the next unknown part has. */
  rowsAhead(bound: string | undefined, reverse: boolean): number {
    return this.parts[this.unknownFrom(bound, reverse)]?.rows ?? 0
  }

  /** The next unknown part and those that follow it, for about so many rows; undefined: none. */
  run(bound: string | undefined, reverse: boolean, limit: number): UnknownRun | undefined {
    const parts: Array<Part> = []
    let at = this.unknownFrom(bound, reverse)
    for (let rows = 0; rows < limit; at++) {
      const part = this.parts[at]
      if (part === undefined || part.block !== undefined) break
      parts.push(part)
      rows += part.rows
    }
    const [first] = parts
    if (first === undefined) return undefined
    return { after: first.after, end: this.parts[at]?.after, parts }
  }

  /**
   * Puts rows in the place of parts that were unknown, unless something has changed there
   * meanwhile. `isEnd`: there are no more rows in the table.
   */
  take(
    { after: from, end, parts }: UnknownRun,
    found: ReadonlyArray<RowEntry>,
    isEnd: boolean
  ): void {
    const at = this.parts.findIndex((part) => part === parts[0])
    if (at < 0 || parts.some((part, index) => this.parts[at + index] !== part)) return
    const within = end === undefined ? found : found.filter(({ key }) => byBytes(key, end) <= 0)
    const known: Array<Part> = []
    let after = from
    const add = (block: Block | undefined, rows: number) => {
      known.push({ after, block, rows })
      this.bytes += block?.bytes ?? 0
    }
    try {
      for (const block of blocksOf(this.columns, within, this.blockRows)) {
        add(block, block.size)
        after = block.key(block.size - 1)
      }
    } catch (error) {
      if (!(error instanceof NotPacked)) throw error
      this.isOff = true
      this.changed(undefined)
      return
    }
    const isAllRead = isEnd || (end !== undefined && after === end)
    if (!isAllRead && within.length === found.length) {
      add(undefined, Math.max(0, parts.reduce((sum, { rows }) => sum + rows, -within.length)))
    } else if (known.length === 0 && at === 0) add(new Block(this.columns, []), 0)
    this.parts.splice(at, parts.length, ...known)
  }

  /** The part where reading goes on. */
  private locate(bound: string | undefined, reverse: boolean): number {
    const { parts } = this
    if (bound === undefined) return reverse ? parts.length - 1 : 0
    let low = 0
    let high = parts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      const order = byBytes(parts[middle]?.after ?? "", bound)
      if (order < 0 || (order === 0 && !reverse)) low = middle
      else high = middle - 1
    }
    return low
  }

  private unknownFrom(bound: string | undefined, reverse: boolean): number {
    let at = this.locate(bound, reverse)
    while (this.parts[at] !== undefined && this.parts[at]?.block !== undefined) {
      at += reverse ? -1 : 1
    }
    return at
  }
}
