/** Answers a query: chooses where its rows come from, filters, orders, and stops at a page. */
import { Effect } from "effect"
import { byBytes, type RecordsApi, type StorageFailure } from "../../runtime/index.ts"
import { chunkRows, probeFactorMax, probeRows, scannedRowsMax, sortedRowsMax, spareRows,
  turnRows } from "../limits.ts"
import type { NumberRange, Order, RowFilter } from "./condition.ts"
import type { HeldSource, RowCache } from "./row-cache.ts"
import { inOrder, merge, type RowEntry, type RowScan, type RowSource, scan } from "./row-sources.ts"
import { compareValues, fieldOf, indexKey, type TableSchema } from "./table-fields.ts"

/** Where a page ended: the row after which the next one goes on. */
export interface Cursor {
  readonly key: string
  /** Of the field that orders, where that is not the key; absent where the row has none. */
  readonly value?: string | number
}

/** One page of what is asked. */
export interface RowRequest {
  readonly table: TableSchema
  readonly filter: RowFilter
  /** Of the indexed field; every row that the filter lets through is within. */
  readonly span: NumberRange
  readonly order: Order
  readonly limit: number
  readonly after: Cursor | undefined
}

/** A page; or, where rows must be sorted first, that there are too many. */
export type RowPage =
  | {
    readonly _tag: "Page"
    readonly entries: ReadonlyArray<RowEntry>
    /** Where the next page begins; undefined where there is none. */
    readonly next: Cursor | undefined
  }
  | { readonly _tag: "TooMany" }

/** How much one answer looks at. */
export interface Bounds {
  readonly scannedRowsMax: number
  readonly sortedRowsMax: number
  readonly chunkRows: number
  readonly probeRows: number
}

export const usualBounds: Bounds = { scannedRowsMax, sortedRowsMax, chunkRows, probeRows }

/** Lets others have their turn. */
const pause = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

type IndexedTable = TableSchema & { readonly index: NonNullable<TableSchema["index"]> }

const isIndexed = <A extends { readonly table: TableSchema }>(
  asked: A
): asked is A & { readonly table: IndexedTable } => asked.table.index !== undefined

const isRestricted = ({ span, table }: RowRequest & { readonly table: IndexedTable }): boolean =>
  span.low > 0 || span.high < table.index.max

interface Gathered {
  readonly entries: ReadonlyArray<RowEntry>
  /** Key (of the source) of the last that was looked at, when the source is not at its end. */
  readonly last: string | undefined
}

/**
 * How many rows to read for those that are still needed, if the rest is like what was scanned, and
 * a few more: so no more are read than shown where most rows fit.
 */
const nextRows = (needed: number, found: number, scanned: number): number =>
  Math.ceil(1.25 * needed * scanned / Math.max(found, 1)) + spareRows

/** Reads a source until there are enough rows, or enough was looked at. */
const gather = Effect.fnUntraced(function*(
  source: RowSource,
  filter: RowFilter,
  limit: number,
  scannedMax: number,
  chunk: number,
  firstRows = limit
): Effect.fn.Return<Gathered, StorageFailure> {
  const entries: Array<RowEntry> = []
  let paused = 0
  for (let scanned = 0;;) {
    const next = scanned === 0
      ? firstRows
      : nextRows(limit - entries.length, entries.length, scanned)
    const wanted = Math.min(chunk, next, scannedMax - scanned)
    const found = yield* source(wanted)
    scanned += found.scanned
    for (const entry of found.entries) {
      if (!filter(entry.row, entry.key)) continue
      entries.push(entry)
      if (entries.length === limit) return { entries, last: undefined }
    }
    if (found.isLast) return { entries, last: undefined }
    if (scanned >= scannedMax) return { entries, last: found.last }
    if (scanned - paused < turnRows) continue
    paused = scanned
    yield* pause
  }
})

const page = (
  entries: ReadonlyArray<RowEntry>,
  limit: number,
  cursorOf: (entry: RowEntry) => Cursor,
  onwards?: Cursor
): RowPage => {
  const last = entries.at(-1)
  const isFull = entries.length === limit && last !== undefined
  return { _tag: "Page", entries, next: isFull ? cursorOf(last) : onwards }
}

/** Rows that are held, and then those of the store. */
const joined = (held: HeldSource, rest: (after: string | undefined) => RowSource): RowSource => {
  let later: RowSource | undefined
  return (wanted) => {
    if (later !== undefined) return later(wanted)
    return Effect.map(held.next(wanted), (found) => {
      const stopped = held.stopped()
      if (stopped === undefined) return found
      later = rest(stopped.after)
      return { ...found, isLast: false }
    })
  }
}

/**
 * The first rows in the order of their keys; more of them, where so many fit that the page will
 * soon be full.
 */
const probed = Effect.fnUntraced(function*(
  source: RowSource,
  filter: RowFilter,
  limit: number,
  rows: number
): Effect.fn.Return<Gathered, StorageFailure> {
  const first = yield* gather(source, filter, limit, rows, rows)
  const hits = first.entries.length
  // Twice what would be needed if the rest were like the beginning.
  const more = Math.ceil(2 * (limit - hits) * rows / Math.max(hits, 1))
  if (first.last === undefined || more > probeFactorMax * rows) return first
  const needed = limit - hits
  const second = yield* gather(source, filter, needed, more, more, nextRows(needed, hits, rows))
  return { entries: [...first.entries, ...second.entries], last: second.last }
})

/** The rows of a restricted span as the store has them, in the order of their keys. */
const ofSpan = Effect.fnUntraced(function*(
  reading: RowScan,
  { filter, limit, span, table: { index } }: RowRequest & { readonly table: IndexedTable },
  { chunkRows: chunk, probeRows: probes, scannedRowsMax: most }: Bounds
): Effect.fn.Return<Gathered, StorageFailure> {
  const probe = probes === 0
    ? { entries: [], last: reading.after ?? "" }
    : yield* probed(scan(reading), filter, limit, Math.max(probes, 2 * limit))
  const { entries, last: from } = probe
  if (from === undefined) return probe
  const rest = limit - entries.length
  const going = { ...reading, after: from === "" ? undefined : from }
  const merged = yield* gather(merge(going, index, span, rest), filter, rest, most, chunk)
  return { entries: [...entries, ...merged.entries], last: merged.last }
})

const byKey = Effect.fnUntraced(function*(
  records: RecordsApi,
  asked: RowRequest,
  bounds: Bounds,
  held: RowCache | undefined
): Effect.fn.Return<RowPage, StorageFailure> {
  const { after, filter, limit, order: { descending: reverse }, span, table } = asked
  const reading: RowScan = { records, table, reverse, after: after?.key }
  const { chunkRows: chunk, scannedRowsMax: most } = bounds
  const answer = ({ entries, last }: Gathered) =>
    page(entries, limit, ({ key }) => ({ key }), last === undefined ? undefined : { key: last })
  const first = held?.read(after?.key, reverse, span)
  if (!isIndexed(asked) || !isRestricted(asked)) {
    const scanned = (from: string | undefined) => scan({ ...reading, after: from })
    const source = first === undefined ? scan(reading) : joined(first, scanned)
    return answer(yield* gather(source, filter, limit, most, chunk))
  }
  if (first === undefined) return answer(yield* ofSpan(reading, asked, bounds))
  const found = yield* gather(first.next, filter, limit, most, chunk)
  const stopped = first.stopped()
  if (stopped === undefined) return answer(found)
  const rest = { ...asked, limit: limit - found.entries.length }
  const more = yield* ofSpan({ ...reading, after: stopped.after }, rest, bounds)
  return answer({ entries: [...found.entries, ...more.entries], last: more.last })
})

/** In the order of the index. */
const byIndex = Effect.fnUntraced(function*(
  records: RecordsApi,
  { after, filter, limit, order, span, table }: RowRequest,
  { chunkRows: chunk, scannedRowsMax: most }: Bounds
): Effect.fn.Return<RowPage, StorageFailure> {
  const { index } = table
  if (index === undefined) throw new Error(`${table.name} have no index`)
  const cursorOf = ({ key, row }: RowEntry): Cursor => ({ key, value: row[index.field] ?? 0 })
  const start = after === undefined ? undefined : indexKey(Number(after.value), after.key)
  const reading: RowScan = { records, table, reverse: order.descending, after: start }
  const { entries, last } = yield* gather(inOrder(reading, index, span), filter, limit, most, chunk)
  if (last === undefined) return page(entries, limit, cursorOf)
  const slash = last.indexOf("/")
  const onwards = { key: last.slice(slash + 1), value: Number(last.slice(0, slash)) }
  return page(entries, limit, cursorOf, onwards)
})

/** In the order of any other field: all that fit are looked at, and the first ones kept. */
const sorted = Effect.fnUntraced(function*(
  records: RecordsApi,
  asked: RowRequest,
  bounds: Bounds,
  held: RowCache | undefined
): Effect.fn.Return<RowPage, StorageFailure> {
  const { after, filter, limit, order, span, table } = asked
  const field = fieldOf(table, order.by)
  if (field === undefined) throw new Error(`${table.name} have no field ${order.by}`)
  const reading: RowScan = { records, table, reverse: false, after: undefined }
  const stored = (from: string | undefined) => {
    const going = { ...reading, after: from }
    return isIndexed(asked) && isRestricted(asked)
      ? merge(going, asked.table.index, span, bounds.chunkRows)
      : scan(going)
  }
  const source = held === undefined
    ? stored(undefined)
    : joined(held.read(undefined, false, span), stored)
  const direction = order.descending ? -1 : 1
  const compare = (one: Cursor, other: Cursor) =>
    direction *
    (compareValues(field, one.value, other.value) || byBytes(one.key, other.key))
  const cursorOf = ({ key, row }: RowEntry): Cursor => {
    const value = row[order.by]
    return value === undefined ? { key } : { key, value }
  }
  const compareEntries = (one: RowEntry, other: RowEntry) => compare(cursorOf(one), cursorOf(other))
  let kept: Array<RowEntry> = []
  for (let scanned = 0;;) {
    const found = yield* source(bounds.chunkRows)
    scanned += found.scanned
    for (const entry of found.entries) {
      if (!filter(entry.row, entry.key)) continue
      if (after === undefined || compare(cursorOf(entry), after) > 0) kept.push(entry)
    }
    if (found.isLast) break
    if (scanned >= bounds.sortedRowsMax) return { _tag: "TooMany" }
    if (kept.length > 2 * limit) kept = kept.sort(compareEntries).slice(0, limit)
    yield* pause
  }
  return page(kept.sort(compareEntries).slice(0, limit), limit, cursorOf)
})

/** One page of the rows that are asked for, in their order; of those in memory where they are. */
export const runQuery = (
  records: RecordsApi,
  asked: RowRequest,
  held: RowCache | undefined,
  bounds: Bounds = usualBounds
): Effect.Effect<RowPage, StorageFailure> => {
  const { order, span, table } = asked
  if (span.low > span.high) return Effect.succeed({ _tag: "Page", entries: [], next: undefined })
  if (order.by === table.key) return byKey(records, asked, bounds, held)
  return order.by === table.index?.field
    ? byIndex(records, asked, bounds)
    : sorted(records, asked, bounds, held)
}
