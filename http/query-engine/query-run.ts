/**
 * Runs a query: chooses the source of its rows, filters and orders them, and ends at a page. The
 * cursor of a page is opaque to clients, and is validated when it returns.
 */
import { Effect } from "effect"
import { byBytes, type RecordsApi, type StorageFailure } from "../../runtime/index.ts"
import { chunkRows, cursorCharsMax, probeFactorMax, probeRows, queryLimitMax, scannedRowsMax,
  sortedRowsMax, spareRows, turnComparisonsMax, turnRows } from "../limits.ts"
import type { NumberRange, Order, RowFilter } from "./condition.ts"
import type { CachedSource, RowCache } from "./row-cache.ts"
import { inOrder, merge, type RowEntry, type RowScan, type RowSource, scan } from "./row-sources.ts"
import { compareValues, fieldOf, indexKey, type TableSchema } from "./table-fields.ts"

/** Where a page ended: the next one begins after this row. */
export interface Cursor {
  readonly key: string
  /** The value of the field that orders, unless that is the key; absent when the row has none. */
  readonly value?: string | number
}

/** A request for one page. */
export interface RowRequest {
  readonly table: TableSchema
  readonly filter: RowFilter
  /** Comparisons of values that the filter makes for one row, at the most. */
  readonly comparisons?: number
  /** Bounds of the indexed field for all rows that the filter accepts. */
  readonly span: NumberRange
  readonly order: Order
  readonly limit: number
  readonly after: Cursor | undefined
}

/** A page, or `TooMany` when it needs a sort of too many rows. */
export type RowPage =
  | {
    readonly _tag: "Page"
    readonly entries: ReadonlyArray<RowEntry>
    /** Undefined on the last page. */
    readonly next: Cursor | undefined
  }
  | { readonly _tag: "TooMany" }

/** How many rows one page may read. */
export interface QueryLimits {
  readonly scannedRowsMax: number
  readonly sortedRowsMax: number
  readonly chunkRows: number
  readonly probeRows: number
}

const defaultLimits: QueryLimits = { scannedRowsMax, sortedRowsMax, chunkRows, probeRows }

/** Yields to the event loop. */
export const pause = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

type IndexedTable = TableSchema & { readonly index: NonNullable<TableSchema["index"]> }

const isIndexed = <A extends { readonly table: TableSchema }>(
  request: A
): request is A & { readonly table: IndexedTable } => request.table.index !== undefined

const isRestricted = ({ span, table }: RowRequest & { readonly table: IndexedTable }): boolean =>
  span.low > 0 || span.high < table.index.max

interface Gathered {
  readonly entries: ReadonlyArray<RowEntry>
  /** The last scanned key of the source; undefined when the page is full or the source ended. */
  readonly last: string | undefined
}

/** How many rows to read for `needed` matches at the rate of matches so far, with some spare. */
const nextRows = (needed: number, found: number, scanned: number): number =>
  Math.ceil(1.25 * needed * scanned / Math.max(found, 1)) + spareRows

/** Rows that a request may test in one turn of the event loop. */
const testedRowsMax = ({ comparisons = 1 }: Pick<RowRequest, "comparisons">): number =>
  Math.max(1, Math.floor(turnComparisonsMax / Math.max(1, comparisons)))

/** Reads a source until `limit` rows match or `scannedMax` rows are scanned. */
const gather = Effect.fnUntraced(function*(
  source: RowSource,
  request: Pick<RowRequest, "comparisons" | "filter">,
  limit: number,
  scannedMax: number,
  chunk: number,
  firstRows = limit
): Effect.fn.Return<Gathered, StorageFailure> {
  const { filter } = request
  const turnMax = testedRowsMax(request)
  const entries: Array<RowEntry> = []
  let paused = 0
  for (let scanned = 0;;) {
    const next = scanned === 0
      ? firstRows
      : nextRows(limit - entries.length, entries.length, scanned)
    const leftInTurn = Math.max(1, turnMax - (scanned - paused))
    const wanted = Math.min(chunk, next, scannedMax - scanned, leftInTurn)
    const found = yield* source(wanted)
    scanned += found.scanned
    for (const entry of found.entries) {
      if (!filter(entry.row, entry.key)) continue
      entries.push(entry)
      if (entries.length === limit) return { entries, last: undefined }
    }
    if (found.isLast) return { entries, last: undefined }
    if (scanned >= scannedMax) return { entries, last: found.last }
    if (scanned - paused < Math.min(turnRows, turnMax)) continue
    paused = scanned
    yield* pause
  }
})

const page = (
  entries: ReadonlyArray<RowEntry>,
  limit: number,
  cursorOf: (entry: RowEntry) => Cursor,
  nextCursor?: Cursor
): RowPage => {
  const last = entries.at(-1)
  const isFull = entries.length === limit && last !== undefined
  return { _tag: "Page", entries, next: isFull ? cursorOf(last) : nextCursor }
}

/** Reads the cache, and from the first missing row on the store. */
const cacheThenStore = (
  cached: CachedSource,
  rest: (after: string | undefined) => RowSource
): RowSource => {
  let later: RowSource | undefined
  return (wanted) => {
    if (later !== undefined) return later(wanted)
    return Effect.map(cached.next(wanted), (found) => {
      const missed = cached.missedAt()
      if (missed === undefined) return found
      later = rest(missed.after)
      return { ...found, isLast: false }
    })
  }
}

/** Scans the first `rows`, and more when their matches promise to fill the page soon. */
const probed = Effect.fnUntraced(function*(
  source: RowSource,
  request: Pick<RowRequest, "comparisons" | "filter" | "limit">,
  rows: number
): Effect.fn.Return<Gathered, StorageFailure> {
  const { limit } = request
  const first = yield* gather(source, request, limit, rows, rows)
  const hits = first.entries.length
  // Twice what the page needs at the rate of matches so far.
  const more = Math.ceil(2 * (limit - hits) * rows / Math.max(hits, 1))
  if (first.last === undefined || more > probeFactorMax * rows) return first
  const needed = limit - hits
  const second = yield* gather(source, request, needed, more, more, nextRows(needed, hits, rows))
  return { entries: [...first.entries, ...second.entries], last: second.last }
})

/** Reads the rows of a restricted span from the store, in the order of their keys. */
const readSpan = Effect.fnUntraced(function*(
  rowScan: RowScan,
  request: RowRequest & { readonly table: IndexedTable },
  { chunkRows: chunk, probeRows: probes, scannedRowsMax: most }: QueryLimits
): Effect.fn.Return<Gathered, StorageFailure> {
  const { limit, span, table: { index } } = request
  const probe = probes === 0
    ? { entries: [], last: rowScan.after ?? "" }
    : yield* probed(scan(rowScan), request, Math.max(probes, 2 * limit))
  const { entries, last: from } = probe
  if (from === undefined) return probe
  const rest = limit - entries.length
  const continued = { ...rowScan, after: from === "" ? undefined : from }
  const merged = yield* gather(merge(continued, index, span, rest), request, rest, most, chunk)
  return { entries: [...entries, ...merged.entries], last: merged.last }
})

/** A page in the order of the keys. */
const pageByKey = Effect.fnUntraced(function*(
  records: RecordsApi,
  request: RowRequest,
  limits: QueryLimits,
  cache: RowCache | undefined
): Effect.fn.Return<RowPage, StorageFailure> {
  const { after, limit, order: { descending: reverse }, span, table } = request
  const rowScan: RowScan = { records, table, reverse, after: after?.key }
  const { chunkRows: chunk, scannedRowsMax: most } = limits
  const toPage = ({ entries, last }: Gathered) =>
    page(entries, limit, ({ key }) => ({ key }), last === undefined ? undefined : { key: last })
  const first = cache?.read(after?.key, reverse, span)
  if (!isIndexed(request) || !isRestricted(request)) {
    const scanned = (from: string | undefined) => scan({ ...rowScan, after: from })
    const source = first === undefined ? scan(rowScan) : cacheThenStore(first, scanned)
    return toPage(yield* gather(source, request, limit, most, chunk))
  }
  if (first === undefined) return toPage(yield* readSpan(rowScan, request, limits))
  const found = yield* gather(first.next, request, limit, most, chunk)
  const missed = first.missedAt()
  if (missed === undefined) return toPage(found)
  const rest = { ...request, limit: limit - found.entries.length }
  const more = yield* readSpan({ ...rowScan, after: missed.after }, rest, limits)
  return toPage({ entries: [...found.entries, ...more.entries], last: more.last })
})

/** A page in the order of the index. */
const pageByIndex = Effect.fnUntraced(function*(
  records: RecordsApi,
  request: RowRequest,
  { chunkRows: chunk, scannedRowsMax: most }: QueryLimits
): Effect.fn.Return<RowPage, StorageFailure> {
  const { after, limit, order, span, table } = request
  const { index } = table
  if (index === undefined) throw new Error(`${table.name} have no index`)
  const cursorOf = ({ key, row }: RowEntry): Cursor => ({ key, value: row[index.field] ?? 0 })
  const start = after === undefined ? undefined : indexKey(Number(after.value), after.key)
  const rowScan: RowScan = { records, table, reverse: order.descending, after: start }
  const { entries, last } = yield* gather(
    inOrder(rowScan, index, span),
    request,
    limit,
    most,
    chunk
  )
  if (last === undefined) return page(entries, limit, cursorOf)
  const slash = last.indexOf("/")
  const nextCursor = { key: last.slice(slash + 1), value: Number(last.slice(0, slash)) }
  return page(entries, limit, cursorOf, nextCursor)
})

/** A page in the order of another field: scans all rows and sorts the matches of the page. */
const sortedPage = Effect.fnUntraced(function*(
  records: RecordsApi,
  request: RowRequest,
  limits: QueryLimits,
  cache: RowCache | undefined
): Effect.fn.Return<RowPage, StorageFailure> {
  const { after, filter, limit, order, span, table } = request
  const field = fieldOf(table, order.by)
  if (field === undefined) throw new Error(`${table.name} have no field ${order.by}`)
  const rowScan: RowScan = { records, table, reverse: false, after: undefined }
  const stored = (from: string | undefined) => {
    const continued = { ...rowScan, after: from }
    return isIndexed(request) && isRestricted(request)
      ? merge(continued, request.table.index, span, limits.chunkRows)
      : scan(continued)
  }
  const source = cache === undefined
    ? stored(undefined)
    : cacheThenStore(cache.read(undefined, false, span), stored)
  const direction = order.descending ? -1 : 1
  const compare = (one: Cursor, other: Cursor) =>
    direction *
    (compareValues(field, one.value, other.value) || byBytes(one.key, other.key))
  const cursorOf = ({ key, row }: RowEntry): Cursor => {
    const value = row[order.by]
    return value === undefined ? { key } : { key, value }
  }
  const compareEntries = (one: RowEntry, other: RowEntry) => compare(cursorOf(one), cursorOf(other))
  let first: Array<RowEntry> = []
  for (let scanned = 0;;) {
    const found = yield* source(Math.min(limits.chunkRows, testedRowsMax(request)))
    scanned += found.scanned
    for (const entry of found.entries) {
      if (!filter(entry.row, entry.key)) continue
      if (after === undefined || compare(cursorOf(entry), after) > 0) first.push(entry)
    }
    if (found.isLast) break
    if (scanned >= limits.sortedRowsMax) return { _tag: "TooMany" }
    if (first.length > 2 * limit) first = first.sort(compareEntries).slice(0, limit)
    yield* pause
  }
  return page(first.sort(compareEntries).slice(0, limit), limit, cursorOf)
})

/** Reads one page of a query: rows in the cache from there, all others from the store. */
export const runQuery = (
  records: RecordsApi,
  request: RowRequest,
  cache: RowCache | undefined,
  limits: QueryLimits = defaultLimits
): Effect.Effect<RowPage, StorageFailure> => {
  const { order, span, table } = request
  if (span.low > span.high) return Effect.succeed({ _tag: "Page", entries: [], next: undefined })
  if (order.by === table.key) return pageByKey(records, request, limits, cache)
  return order.by === table.index?.field
    ? pageByIndex(records, request, limits)
    : sortedPage(records, request, limits, cache)
}

/** Where a page ended, and how many rows the pages so far had. */
export interface CursorPosition {
  readonly count: number
  readonly cursor: Cursor
}

export const encodeCursor = ({ count, cursor }: CursorPosition): string =>
  Buffer.from(JSON.stringify([count, cursor.key, cursor.value])).toString("base64url")

const isKey = (value: unknown): value is string =>
  typeof value === "string" && !/[\u0000/]/.test(value)

const isValue = (value: unknown): value is string | number =>
  typeof value === "string" || (typeof value === "number" && Number.isSafeInteger(value))

const utf8 = new TextDecoder("utf-8", { fatal: true })

const parse = (text: string): unknown => {
  try {
    return JSON.parse(utf8.decode(Buffer.from(text, "base64url")))
  } catch {
    return undefined
  }
}

/** The position in a cursor; undefined for a cursor that is not valid for this order. */
export const decodeCursor = (
  table: TableSchema,
  order: Order,
  text: string
): CursorPosition | undefined => {
  if (text.length > cursorCharsMax) return undefined
  const parts: unknown = parse(text)
  if (!Array.isArray(parts) || parts.length < 2 || parts.length > 3) return undefined
  const [count, key, last]: ReadonlyArray<unknown> = parts
  const value = last ?? undefined
  if (!isKey(key) || typeof count !== "number" || !Number.isSafeInteger(count)) return undefined
  if (count < 0 || count > queryLimitMax) return undefined
  if (order.by === table.index?.field) {
    const { max } = table.index
    if (typeof value !== "number" || value < 0 || value > max) return undefined
    return { count, cursor: { key, value } }
  }
  if (value === undefined) return { count, cursor: { key } }
  return isValue(value) && order.by !== table.key ? { count, cursor: { key, value } } : undefined
}
