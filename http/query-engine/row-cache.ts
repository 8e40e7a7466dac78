/**
 * Rows of an indexed table in memory, packed, as many as there is room for: parts of the table
 * that are known, and parts that are not, in the order of keys. The store stays the truth: what
 * changes makes its part unknown, until it is read again.
 */
import { Effect } from "effect"
import { byBytes, type RecordsApi, type StorageFailure } from "../../runtime/index.ts"
import { blockCharsMax, blockOverheadBytes, blockRows, fillPauseMs, fillRest, fillRows,
  heldBytesMax, heldLoadsMax, spareRows } from "../limits.ts"
import type { NumberRange } from "./condition.ts"
import type { Chunk, RowEntry, RowSource } from "./row-sources.ts"
import type { Row, TableSchema } from "./table-fields.ts"

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

/*
 * The keys of a table, cut into parts in their order: those whose rows are held, packed, and those
 * of which nothing is known. Nothing here waits.
 */

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

/*
 * Rows that follow each other in a table, packed: their texts in one text, and where each ends. A
 * text and three small arrays for a hundred rows, where as many objects would take thrice the room
 * and be looked at by each garbage collection.
 */

export interface HeldBounds {
  readonly blockRows: number
  readonly fillPauseMs: number
  readonly fillRows: number
  readonly heldBytesMax: number
  readonly heldLoadsMax: number
}

const usual: HeldBounds = {
  blockRows,
  fillPauseMs,
  fillRows,
  heldBytesMax,
  heldLoadsMax
}

/** Rows as they are held, until a part is reached that is not. */
export interface HeldSource {
  readonly next: RowSource
  /** After (before, in reverse) which key the store must be read; undefined: not at all so far. */
  readonly stopped: () => { readonly after: string | undefined } | undefined
}

export class RowCache {
  private readonly records: RecordsApi
  private readonly table: TableSchema
  private readonly bounds: HeldBounds
  private readonly parts: Parts
  /** Keys that not everybody sees alike yet, and how many changes of each are under way. */
  private readonly changing = new Map<string, number>()
  private changes = 0
  private isFilling = false

  constructor(records: RecordsApi, table: TableSchema, columns: Columns, bounds = usual) {
    this.records = records
    this.table = table
    this.bounds = bounds
    this.parts = new Parts(columns, bounds.blockRows)
    records.watch(table.name, {
      changing: (key) => {
        this.parts.changed(key)
        this.changing.set(key, (this.changing.get(key) ?? 0) + 1)
      },
      changed: (key) => {
        this.changes++
        this.parts.changed(key)
        if (key === undefined) return
        const others = (this.changing.get(key) ?? 1) - 1
        if (others === 0) this.changing.delete(key)
        else this.changing.set(key, others)
      }
    })
  }

  /** What they take in memory, about. */
  get bytes(): number {
    return this.parts.bytes
  }

  /** Whether all of the table is held, or as much as there is room for. */
  get isFull(): boolean {
    return this.parts.isOff || this.bytes >= this.bounds.heldBytesMax || this.parts.isWhole
  }

  /** Rows within the span in the order of their keys, or in its reverse, after a key. */
  read(after: string | undefined, reverse: boolean, span: NumberRange): HeldSource {
    let bound = after
    let stopped: ReturnType<HeldSource["stopped"]>
    let loads: number | undefined
    const next = Effect.fnUntraced({ self: this }, function*(
      this: RowCache,
      wanted: number
    ): Effect.fn.Return<Chunk, StorageFailure> {
      const entries: Array<RowEntry> = []
      const chunk = (isLast: boolean): Chunk => ({
        entries,
        scanned: entries.length,
        last: entries.at(-1)?.key ?? bound,
        isLast
      })
      if (loads === undefined && !(yield* this.records.isCurrent)) {
        stopped = { after: bound }
        return chunk(true)
      }
      loads ??= 0
      while (!this.parts.isOff) {
        const place = this.parts.collect(entries, { bound, reverse, span, wanted })
        bound = place.bound
        if (place.ended !== undefined) return chunk(place.ended === "AtEnd")
        if (loads++ >= this.bounds.heldLoadsMax || !(yield* this.learn(bound, reverse))) break
      }
      stopped = { after: bound }
      yield* this.fill()
      return chunk(true)
    })
    return { next, stopped: () => stopped }
  }

  /** Reads one small part in which something has changed; whether it is worth to look again. */
  private learn(
    bound: string | undefined,
    reverse: boolean
  ): Effect.Effect<boolean, StorageFailure> {
    const { blockRows: most, heldBytesMax: room } = this.bounds
    const rows = this.parts.rowsAhead(bound, reverse)
    if (rows > 2 * most || this.bytes >= room) return Effect.succeed(false)
    return this.load(bound, reverse, rows + spareRows)
  }

  /** Reads rows of the next unknown parts; false where they are being changed. */
  private load(
    bound: string | undefined,
    reverse: boolean,
    limit: number
  ): Effect.Effect<boolean, StorageFailure> {
    const run = this.parts.run(bound, reverse, limit)
    if (run === undefined) return Effect.succeed(true)
    // What begins to change from here on puts another part in the place of one of the run.
    for (const key of this.changing.keys()) if (isWithin(key, run)) return Effect.succeed(false)
    const { name, parse } = this.table
    const range = { limit, ...run.after === undefined ? {} : { after: run.after } }
    return Effect.map(this.records.range(name, range), (found) => {
      const entries = found.map(({ key, value }) => ({ key, row: parse(value) }))
      this.parts.take(run, entries, found.length < limit)
      return true
    })
  }

  /** Begins to read what is unknown, a piece at a time and with pauses, as far as there is room. */
  private fill(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.isFilling || this.isFull) return Effect.void
      this.isFilling = true
      const ended = Effect.sync(() => {
        this.isFilling = false
      })
      const filling = Effect.ensuring(Effect.ignore(this.filling()), ended)
      return Effect.asVoid(Effect.forkDetach(filling))
    })
  }

  private filling = Effect.fnUntraced({ self: this }, function*(
    this: RowCache
  ): Effect.fn.Return<void, StorageFailure> {
    const { fillPauseMs: pauseMs, fillRows: rows } = this.bounds
    while (!this.isFull) {
      let { changes } = this
      if (!(yield* this.records.isCurrent)) return
      const startedMs = performance.now()
      const isRead = yield* this.load(undefined, false, rows)
      yield* Effect.sleep(isRead ? Math.ceil(fillRest * (performance.now() - startedMs)) : pauseMs)
      // While more is changed than can be read, it waits.
      while (this.changes - changes > rows / 10) {
        changes = this.changes
        yield* Effect.sleep(pauseMs)
      }
    }
  })
}

/** The rows that a node holds of its tables. */
export class RowCaches {
  private readonly records: RecordsApi
  private readonly tables = new Map<string, RowCache | undefined>()

  constructor(records: RecordsApi) {
    this.records = records
  }

  /** undefined: of this table none are held. */
  of(table: TableSchema): RowCache | undefined {
    if (!this.tables.has(table.name)) {
      const columns = columnsOf(table)
      const held = columns === undefined ? undefined : new RowCache(this.records, table, columns)
      this.tables.set(table.name, held)
    }
    return this.tables.get(table.name)
  }
}
