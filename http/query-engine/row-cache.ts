/**
 * Rows of indexed tables in memory, packed, so that pages of queries need not read the store. The
 * ranges of keys that are cached, the cache of one table, and the caches of a node.
 */
import { Effect } from "effect"
import { byBytes, type RecordsApi, type StorageFailure } from "../../runtime/index.ts"
import { blockRows, fillPauseMs, fillRest, fillRows, rowCacheBytesMax, rowCacheLoadsMax,
  spareRows } from "../limits.ts"
import type { NumberRange } from "./condition.ts"
import { blocksOf, columnsOf, type PackedColumns, RowBlock, UnpackableRow } from "./row-block.ts"
import type { Chunk, RowEntry, RowSource } from "./row-sources.ts"
import type { TableSchema } from "./table-fields.ts"

/** The keys after `after`, up to `after` of the next range. A change replaces the object. */
interface CachedRange {
  /** undefined: from the first key. */
  readonly after: string | undefined
  /** undefined: not cached. */
  readonly block: RowBlock | undefined
  /** Estimated number of rows. */
  readonly rows: number
}

/** Consecutive ranges that are not cached. */
interface MissingRun {
  readonly after: string | undefined
  /** Their last key; undefined: to the end of the table. */
  readonly end: string | undefined
  readonly ranges: ReadonlyArray<CachedRange>
}

/** The position of a scan: it continues after (in reverse: before) `bound`. */
interface ScanPosition {
  readonly bound: string | undefined
  /** undefined when the next range is not cached. */
  readonly ended: "Full" | "AtEnd" | undefined
}

/** Rows wanted after (in reverse: before) `bound`. */
interface CacheScan {
  readonly bound: string | undefined
  readonly reverse: boolean
  readonly span: NumberRange
  readonly wanted: number
}

const wholeTable: CachedRange = { after: undefined, block: undefined, rows: Infinity }

const isWithin = (key: string, { after, end }: MissingRun): boolean =>
  (after === undefined || byBytes(key, after) > 0) &&
  (end === undefined || byBytes(key, end) <= 0)

/** The row of a block at which a scan begins. */
const startIn = (block: RowBlock, { bound, reverse }: CacheScan): number => {
  if (bound === undefined) return reverse ? block.size - 1 : 0
  return reverse
    ? block.countUntil((key) => byBytes(key, bound) >= 0) - 1
    : block.countUntil((key) => byBytes(key, bound) > 0)
}

/**
 * The keys of a table, divided into consecutive ranges: cached ones with a block of rows, and
 * missing ones.
 */
export class CachedRanges {
  private readonly columns: PackedColumns
  private readonly blockRows: number
  private ranges: Array<CachedRange> = [wholeTable]
  /** Approximate size of the blocks in memory. */
  bytes = 0
  /** The table has a row that cannot be packed: nothing is cached any more. */
  isDisabled = false

  constructor(columns: PackedColumns, blockRows: number) {
    this.columns = columns
    this.blockRows = blockRows
  }

  get isComplete(): boolean {
    return this.ranges.every(({ block }) => block !== undefined)
  }

  /** Adds rows within the span to `entries`, until there are enough or a range is missing. */
  collect(entries: Array<RowEntry>, scan: CacheScan): ScanPosition {
    const { bound: from, reverse, span: { high, low }, wanted } = scan
    const { ranges } = this
    const step = reverse ? -1 : 1
    let passed: RowBlock | undefined
    const bound = () => passed === undefined ? from : passed.key(reverse ? 0 : passed.size - 1)
    for (let index = this.locate(from, reverse), isFirst = true;; index += step, isFirst = false) {
      if (index < 0 || index >= ranges.length) return { bound: bound(), ended: "AtEnd" }
      const block = ranges[index]?.block
      if (block === undefined) return { bound: bound(), ended: undefined }
      const { greatest, least, size } = block
      const start = isFirst ? startIn(block, scan) : reverse ? size - 1 : 0
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

  /** Drops the range of a changed row; undefined: any row may have changed. */
  invalidate(key: string | undefined): void {
    if (key === undefined) {
      this.ranges = [wholeTable]
      this.bytes = 0
      return
    }
    const at = this.locate(key, true)
    const range = this.ranges[at]
    if (range === undefined) return
    const { after, block, rows } = range
    this.bytes -= block?.bytes ?? 0
    this.ranges[at] = { after, block: undefined, rows }
  }

  /** Estimated rows of the next missing range. */
  missingRows(bound: string | undefined, reverse: boolean): number {
    return this.ranges[this.nextMissing(bound, reverse)]?.rows ?? 0
  }

  /** The next missing ranges, of about `limit` rows; undefined when none is missing. */
  missingRun(bound: string | undefined, reverse: boolean, limit: number): MissingRun | undefined {
    const ranges: Array<CachedRange> = []
    let at = this.nextMissing(bound, reverse)
    for (let rows = 0; rows < limit; at++) {
      const range = this.ranges[at]
      if (range === undefined || range.block !== undefined) break
      ranges.push(range)
      rows += range.rows
    }
    const [first] = ranges
    if (first === undefined) return undefined
    return { after: first.after, end: this.ranges[at]?.after, ranges }
  }

  /**
   * Caches the rows of missing ranges, unless one of these has changed since `missingRun`. `isEnd`:
   * the table has no later rows.
   */
  insert(
    { after: from, end, ranges }: MissingRun,
    found: ReadonlyArray<RowEntry>,
    isEnd: boolean
  ): void {
    const at = this.ranges.findIndex((range) => range === ranges[0])
    if (at < 0 || ranges.some((range, index) => this.ranges[at + index] !== range)) return
    const within = end === undefined ? found : found.filter(({ key }) => byBytes(key, end) <= 0)
    const inserted: Array<CachedRange> = []
    let after = from
    const add = (block: RowBlock | undefined, rows: number) => {
      inserted.push({ after, block, rows })
      this.bytes += block?.bytes ?? 0
    }
    try {
      for (const block of blocksOf(this.columns, within, this.blockRows)) {
        add(block, block.size)
        after = block.key(block.size - 1)
      }
    } catch (error) {
      if (!(error instanceof UnpackableRow)) throw error
      this.isDisabled = true
      this.invalidate(undefined)
      return
    }
    const isAllRead = isEnd || (end !== undefined && after === end)
    if (!isAllRead && within.length === found.length) {
      add(undefined, Math.max(0, ranges.reduce((sum, { rows }) => sum + rows, -within.length)))
    } else if (inserted.length === 0 && at === 0) add(new RowBlock(this.columns, []), 0)
    this.ranges.splice(at, ranges.length, ...inserted)
  }

  /** The index of the range with the next key after (in reverse: before) `bound`. */
  private locate(bound: string | undefined, reverse: boolean): number {
    const { ranges } = this
    if (bound === undefined) return reverse ? ranges.length - 1 : 0
    let low = 0
    let high = ranges.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      const order = byBytes(ranges[middle]?.after ?? "", bound)
      if (order < 0 || (order === 0 && !reverse)) low = middle
      else high = middle - 1
    }
    return low
  }

  private nextMissing(bound: string | undefined, reverse: boolean): number {
    let at = this.locate(bound, reverse)
    while (this.ranges[at]?.block !== undefined) {
      at += reverse ? -1 : 1
    }
    return at
  }
}

export interface RowCacheLimits {
  readonly blockRows: number
  readonly fillPauseMs: number
  readonly fillRows: number
  readonly rowCacheBytesMax: number
  readonly rowCacheLoadsMax: number
}

const defaultLimits: RowCacheLimits = {
  blockRows,
  fillPauseMs,
  fillRows,
  rowCacheBytesMax,
  rowCacheLoadsMax
}

/** Cached rows, up to the first missing range. */
export interface CachedSource {
  readonly next: RowSource
  /** After (in reverse: before) this key only the store has the rows; undefined: none so far. */
  readonly missedAt: () => { readonly after: string | undefined } | undefined
}

/**
 * The rows of one indexed table in memory, as many as fit. The store remains the truth: a change
 * drops the range of its row until it is read again.
 */
export class RowCache {
  private readonly records: RecordsApi
  private readonly table: TableSchema
  private readonly limits: RowCacheLimits
  private readonly ranges: CachedRanges
  /** Number of changes in flight by key: two reads of such a key may differ. */
  private readonly changing = new Map<string, number>()
  private changes = 0
  private isFilling = false

  constructor(
    records: RecordsApi,
    table: TableSchema,
    columns: PackedColumns,
    limits = defaultLimits
  ) {
    this.records = records
    this.table = table
    this.limits = limits
    this.ranges = new CachedRanges(columns, limits.blockRows)
    records.watch(table.name, {
      changing: (key) => {
        this.ranges.invalidate(key)
        this.changing.set(key, (this.changing.get(key) ?? 0) + 1)
      },
      changed: (key) => {
        this.changes++
        this.ranges.invalidate(key)
        if (key === undefined) return
        const others = (this.changing.get(key) ?? 1) - 1
        if (others === 0) this.changing.delete(key)
        else this.changing.set(key, others)
      }
    })
  }

  /** Approximate size in memory. */
  get bytes(): number {
    return this.ranges.bytes
  }

  /** Whether all of the table is cached, or as much as fits. */
  get isFull(): boolean {
    const { bytes, limits, ranges } = this
    return ranges.isDisabled || bytes >= limits.rowCacheBytesMax || ranges.isComplete
  }

  /** Reads rows within the span in the order of their keys, or its reverse, after a key. */
  read(after: string | undefined, reverse: boolean, span: NumberRange): CachedSource {
    let bound = after
    let missedAt: ReturnType<CachedSource["missedAt"]>
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
        missedAt = { after: bound }
        return chunk(true)
      }
      loads ??= 0
      while (!this.ranges.isDisabled) {
        const position = this.ranges.collect(entries, { bound, reverse, span, wanted })
        bound = position.bound
        if (position.ended !== undefined) return chunk(position.ended === "AtEnd")
        if (loads++ >= this.limits.rowCacheLoadsMax) break
        if (!(yield* this.loadSmallRange(bound, reverse))) break
      }
      missedAt = { after: bound }
      yield* this.fill()
      return chunk(true)
    })
    return { next, missedAt: () => missedAt }
  }

  /** Loads the next missing range if it is small, as after a change; returns whether it did. */
  private loadSmallRange(
    bound: string | undefined,
    reverse: boolean
  ): Effect.Effect<boolean, StorageFailure> {
    const { blockRows: blockSize, rowCacheBytesMax: bytesMax } = this.limits
    const rows = this.ranges.missingRows(bound, reverse)
    if (rows > 2 * blockSize || this.bytes >= bytesMax) return Effect.succeed(false)
    return this.load(bound, reverse, rows + spareRows)
  }

  /** Loads the next missing ranges; false when a row in them is changing. */
  private load(
    bound: string | undefined,
    reverse: boolean,
    limit: number
  ): Effect.Effect<boolean, StorageFailure> {
    const run = this.ranges.missingRun(bound, reverse, limit)
    if (run === undefined) return Effect.succeed(true)
    // A change that begins later replaces a range of the run, and `insert` notices.
    for (const key of this.changing.keys()) if (isWithin(key, run)) return Effect.succeed(false)
    const { name, parse } = this.table
    const range = { limit, ...run.after === undefined ? {} : { after: run.after } }
    return Effect.map(this.records.range(name, range), (found) => {
      const entries = found.map(({ key, value }) => ({ key, row: parse(value) }))
      this.ranges.insert(run, entries, found.length < limit)
      return true
    })
  }

  /** Starts to load all missing ranges that fit, in pieces with pauses, unless it already does. */
  private fill(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.isFilling || this.isFull) return Effect.void
      this.isFilling = true
      const end = Effect.sync(() => {
        this.isFilling = false
      })
      return Effect.asVoid(
        Effect.forkDetach(Effect.ensuring(Effect.ignore(this.loadAll()), end))
      )
    })
  }

  private loadAll = Effect.fnUntraced({ self: this }, function*(
    this: RowCache
  ): Effect.fn.Return<void, StorageFailure> {
    const { fillPauseMs: pauseMs, fillRows: rows } = this.limits
    while (!this.isFull) {
      let { changes } = this
      if (!(yield* this.records.isCurrent)) return
      const startedMs = performance.now()
      const isRead = yield* this.load(undefined, false, rows)
      yield* Effect.sleep(isRead ? Math.ceil(fillRest * (performance.now() - startedMs)) : pauseMs)
      // Wait while rows change faster than this loop can read them.
      while (this.changes - changes > rows / 10) {
        changes = this.changes
        yield* Effect.sleep(pauseMs)
      }
    }
  })
}

/** The row caches of a node. */
export class RowCaches {
  private readonly records: RecordsApi
  private readonly tables = new Map<string, RowCache | undefined>()

  constructor(records: RecordsApi) {
    this.records = records
  }

  /** The cache of a table; undefined when its rows cannot be packed. */
  of(table: TableSchema): RowCache | undefined {
    if (!this.tables.has(table.name)) {
      const columns = columnsOf(table)
      this.tables.set(
        table.name,
        columns && new RowCache(this.records, table, columns)
      )
    }
    return this.tables.get(table.name)
  }
}
